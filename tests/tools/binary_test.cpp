// The program as a user runs it: what it prints where, and its exit status.
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "sim/version.h"
#include "tests/paths.h"
#include "tests/tools/helpers.h"

namespace railyard::tests {
namespace {

using nlohmann::json;

// Runs for minutes: 1024 ranks, many sizes, nothing replayed.
std::string endless_yaml() {
  return "railyard: 1\nname: endless\n"
         "cluster:\n  machine: flat\n  nodes: 512\n"
         "  fabric: {kind: switch, link_rate: 400Gb/s}\n"
         "nccl: {algorithm: Ring, protocol: plain, channels: 4}\n"
         "collectives:\n"
         "  - {collective: AllReduce, sizes: {from: 64MiB, to: 4GiB, factor: 2}}\n"
         "  - {collective: AllGather, sizes: {from: 64MiB, to: 4GiB, factor: 2}}\n"
         "engine: {trace: none, replay: false}\n";
}

}  // namespace

TEST_CASE("program: version and help") {
  const TemporaryDirectory directory;
  const Outcome version = run_program(directory, {"--version"});
  CHECK(version.status == 0);
  CHECK(version.out == "railyard " + std::string(sim::kVersion) + "\n");
  for (const char* command : {"run", "explore", "topo", "nccl", "schedule"}) {
    const Outcome help = run_program(directory, {"help", command});
    CHECK(help.status == 0);
    CHECK(contains(help.out, "Usage: "));
    for (const std::string& line : lines(help.out)) CHECK(line.size() <= 100);
  }
  CHECK(run_program(directory, {"run", "--help"}).out ==
        run_program(directory, {"help", "run"}).out);
  CHECK(contains(run_program(directory, {"help", "machines"}).out, "hgx-h100"));
  CHECK(contains(run_program(directory, {"help", "models"}).out, "resnet50"));
  CHECK(contains(run_program(directory, {"help", "parameters"}).out, "hbm_bandwidth"));
  CHECK(contains(run_program(directory, {"help", "scenarios"}).out, "resnet50-ddp-2gpu"));
  CHECK(contains(run_program(directory, {"help", "status"}).out, "130  interrupted"));
}

TEST_CASE("program: usage errors are status 2 and name the mistake") {
  const TemporaryDirectory directory;
  CHECK(run_program(directory, {}).status == 2);
  const Outcome command = run_program(directory, {"rnu"});
  CHECK(command.status == 2);
  CHECK(command.err ==
        "railyard: there is no command 'rnu'; did you mean 'run'? (one of: run, explore, topo, "
        "nccl, schedule, validate, calibrate, trace, help)\nrailyard: try `railyard --help`\n");
  const std::vector<std::vector<std::string>> wrong{{"run"},
                                                    {"run", "a.yaml", "--no-such-option"},
                                                    {"run", "a.yaml", "--format", "xml"},
                                                    {"run", "a.yaml", "--max-memory", "3"},
                                                    {"run", "a.yaml", "--ranks", "-1"},
                                                    {"run", "a.yaml", "--timeout", "nan"},
                                                    {"run", "a.yaml", "--timeout", "inf"},
                                                    {"run", "a.yaml", "--timeout", "0"},
                                                    {"run", "a.yaml", "--max-events", "nan"},
                                                    {"run", "a.yaml", "--max-events", "1e300"},
                                                    {"explore", "a.yaml", "--jobs", "0"},
                                                    {"topo"},
                                                    {"topo", "show"},
                                                    {"schedule"},
                                                    {"schedule", "check"},
                                                    {"nccl"},
                                                    {"nccl", "plan"},
                                                    {"nccl", "compare", "a.yaml"},
                                                    {"help", "nothing"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = run_program(directory, arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.starts_with("railyard: "));
  }
  CHECK(contains(run_program(directory, {"run", "a.yaml", "--format", "xml"}).err,
                 "unknown output format 'xml' (one of: table, nccl-tests)"));
  CHECK(contains(run_program(directory, {"run", "a.yaml", "--timeout", "nan"}).err,
                 "--timeout: a number above 0 and at most 1e15 is expected, not 'nan'"));
}

TEST_CASE("program: bad input is status 1, one line, and nothing is written") {
  const TemporaryDirectory directory;
  directory.write("empty.yaml", "");
  directory.write("junk.yaml", std::string("\x7f"
                                           "ELF\0\x01\x02\xff",
                                           8));
  directory.write("key.yaml", small_yaml("nodess: 3\n"));
  directory.write("good.yaml", small_yaml());
  directory.write("out/result.json", "{\n  \"railyard_result\": 1, \"old\": true}");
  const std::vector<std::vector<std::string>> bad{
      {"run", "no-such.yaml", "-o", "out"},
      {"run", "empty.yaml", "-o", "out"},
      {"run", "junk.yaml", "-o", "out"},
      {"run", "key.yaml", "-o", "out"},
      {"run", ".", "-o", "out"},
      {"run", "good.yaml", "--set", "x", "-o", "out"},
      {"run", "good.yaml", "--set", "seed=a", "-o", "out"},
      {"run", "good.yaml", "--max-events", "10", "-o", "out"},
      {"run", "good.yaml", "--max-memory", "10B", "-o", "out"},
      {"explore", "good.yaml", "-o", "out"},
      {"explore", "junk.yaml", "-o", "out"},
      {"topo", "show", "key.yaml"},
      {"topo", "show", "hgx-h10"},
      {"nccl", "plan", "key.yaml"},
      {"schedule", "check", "no-such.txt"},
      {"schedule", "check", "key.yaml"}};
  for (const auto& arguments : bad) {
    CAPTURE(arguments[1]);
    const Outcome outcome = run_program(directory, arguments);
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(lines(outcome.err).size() == 1);
    CHECK(outcome.err.starts_with("railyard: "));
  }
  CHECK(contains(directory.read("out/result.json"), "\"old\": true"));
  CHECK(
      lines(run_program(directory, {"run", "good.yaml", "--max-events", "10"}).err)[0].starts_with(
          "railyard: good.yaml: this run takes about "));
  CHECK(contains(run_program(directory, {"topo", "show", "hgx-h10"}).err,
                 "did you mean 'hgx-h100'?"));
}

TEST_CASE("program: a run prints its table and writes its files") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml());
  const Outcome outcome = run_program(directory, {"run", "s.yaml", "-o", "out"});
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  CHECK(contains(outcome.out, "AllReduce of float, 4 ranks\n"));
  for (const std::string& line : lines(outcome.out)) CHECK(line.size() <= 100);
  const TemporaryDirectory expected;
  for (const char* name :
       {"result.json", "resolved.yaml", "timeline.json", "collectives.csv", "links.csv"})
    CHECK(directory.has(std::string("out/") + name));
  const json result = json::parse(directory.read("out/result.json"));
  CHECK(result.at("collectives").size() == 2);
  CHECK(result.at("inputs")[0].at("path") == "s.yaml");
  CHECK(json::parse(directory.read("out/timeline.json")).at("traceEvents").size() > 10);
  // The resolved scenario gives the same numbers again.
  const Outcome again = run_program(directory, {"run", "out/resolved.yaml", "--json"});
  CHECK(again.status == 0);
  CHECK(json::parse(again.out).at("collectives") == result.at("collectives"));
  CHECK(json::parse(again.out).at("trace_hash") == result.at("trace_hash"));
}

TEST_CASE("program: --json prints JSON only, equal every time, -q prints nothing") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml());
  const Outcome first = run_program(directory, {"run", "s.yaml", "--json"});
  CHECK(first.status == 0);
  CHECK(json::parse(first.out).at("railyard_result") == 1);
  CHECK(run_program(directory, {"run", "s.yaml", "--json"}).out == first.out);
  const Outcome quiet = run_program(directory, {"run", "s.yaml", "-q"});
  CHECK(quiet.status == 0);
  CHECK(quiet.out.empty());
  const json unreplayed =
      json::parse(run_program(directory, {"run", "s.yaml", "--json", "--no-replay"}).out);
  CHECK(unreplayed.at("trace_hash") == json::parse(first.out).at("trace_hash"));
  CHECK(unreplayed.at("collectives") == json::parse(first.out).at("collectives"));
}

TEST_CASE("program: nccl-tests' own output, of collectives only") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml());
  const Outcome outcome = run_program(directory, {"run", "s.yaml", "--format", "nccl-tests"});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.out, "# Collective test starting: all_reduce_perf\n"));
  CHECK(contains(outcome.out, "#  Rank  3 Group  0 Pid      3 on      node3 device  0 "));
  CHECK(contains(outcome.out, "\n       65536         16384     float     sum      -1  "));
  CHECK(contains(outcome.out, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "));
}

TEST_CASE("program: a directory with somebody else's files is refused before anything runs") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml());
  directory.write("out/links.csv", "mine");
  const Outcome outcome = run_program(directory, {"run", "s.yaml", "-o", "out"});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.err, "railyard did not write"));
  CHECK(directory.read("out/links.csv") == "mine");
}

TEST_CASE("program: output that cannot be written is status 1") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml());
  if (access("/dev/full", W_OK) != 0) return;
  const std::string command =
      "cd '" + directory.path() + "' && '" + RAILYARD_BINARY + "' run s.yaml > /dev/full 2> err";
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 1);
  CHECK(contains(directory.read("err"), "cannot write to standard output"));
}

TEST_CASE("program: --timeout ends with a report of where it was") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", endless_yaml());
  const Outcome outcome =
      run_program(directory, {"run", "s.yaml", "--timeout", "0.2", "-o", "out"});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.err, "stopped by --timeout after 0.2"));
  CHECK(contains(outcome.err, " events, about "));
  CHECK_FALSE(directory.has("out/result.json"));
}

TEST_CASE("program: Ctrl-C and SIGTERM are status 130 and leave nothing half-written") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TemporaryDirectory directory;
    directory.write("s.yaml", endless_yaml());
    Program program(directory, {"run", "s.yaml", "-o", "out"});
    usleep(400'000);
    program.send(signal);
    const Outcome outcome = program.wait();
    CHECK(outcome.status == 130);
    CHECK(contains(outcome.err, "interrupted"));
    CHECK_FALSE(directory.has("out/result.json"));
  }
}

TEST_CASE("program: topologies as text, matrix and DOT") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml());
  const Outcome machine = run_program(directory, {"topo", "show", "dgx-a100"});
  CHECK(machine.status == 0);
  CHECK(contains(machine.out, "GPU0"));
  CHECK(contains(run_program(directory, {"topo", "show", "dgx-a100", "--format", "matrix"}).out,
                 "NV12"));
  const Outcome dot = run_program(directory, {"topo", "show", "s.yaml", "--format", "dot"});
  CHECK(dot.status == 0);
  CHECK(contains(dot.out, "graph"));
  CHECK(contains(run_program(directory, {"topo", "show", "s.yaml", "--nodes", "6"}).out, "6"));
}

TEST_CASE("program: a schedule is proved, or its first fault named") {
  const TemporaryDirectory directory;
  const std::string right =
      "schedule pair\ncollective AllReduce\nranks 2\nchunks 2\n"
      "block 0.0 send 1 recv 1\n  send i1\n  recvReduceCopySend i0 o0\n  recv o1\n"
      "block 1.0 send 0 recv 0\n  send i0\n  recvReduceCopySend i1 o1\n  recv o0\n";
  directory.write("right.txt", right);
  const Outcome good = run_program(directory, {"schedule", "check", "right.txt"});
  CHECK(good.status == 0);
  CHECK(good.out ==
        "right.txt: proved to be AllReduce of 2 ranks\n  2 chunks, Simple; 2 blocks; 6 operations "
        "and 4 messages for one portion of every chunk\n");
  std::string wrong = right;
  wrong.replace(wrong.find("recvReduceCopySend i0 o0"), 24, "recvReduceCopySend i1 o0");
  directory.write("wrong.txt", wrong);
  const Outcome bad = run_program(directory, {"schedule", "check", "wrong.txt"});
  CHECK(bad.status == 1);
  CHECK(bad.out.empty());
  CHECK(bad.err.starts_with("railyard: wrong.txt: rank 0 output [0,"));
}

}  // namespace railyard::tests
