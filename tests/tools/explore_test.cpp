// Explorations as a user runs them: brute force, interruptions, any number of jobs.
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/tools/helpers.h"

namespace railyard::tests {
namespace {

using nlohmann::json;

std::string explore_yaml(const std::string& objective = "time") {
  return small_yaml(
      "explore:\n"
      "  vary:\n"
      "    nccl.channels: [1, 2, 4]\n"
      "    cluster.fabric.link_rate: [100Gb/s, 200Gb/s]\n"
      "  objective: " +
      objective + "\n");
}

// Points that take a while each, so that a signal meets the exploration under way.
std::string slow_yaml() {
  return "railyard: 1\nname: slow\n"
         "cluster:\n  machine: flat\n  nodes: 64\n"
         "  fabric: {kind: switch, link_rate: 400Gb/s}\n"
         "nccl: {algorithm: Ring, protocol: plain, channels: 2}\n"
         "collectives:\n  - {collective: AllReduce, sizes: [16MiB, 32MiB]}\n"
         "engine: {trace: none}\n"
         "explore:\n  vary:\n"
         "    nccl.channels: [1, 2, 3, 4, 5, 6]\n"
         "    cluster.fabric.link_rate: [100Gb/s, 200Gb/s, 400Gb/s]\n";
}

std::size_t finished_points(const TemporaryDirectory& directory) {
  std::size_t n = 0;
  for (const std::string& line : lines(directory.read("out/journal.jsonl")))
    n += contains(line, "\"key\"") ? 1U : 0U;
  return n;
}

void wait_for_points(const TemporaryDirectory& directory, std::size_t n) {
  for (int i = 0; i < 2000 && finished_points(directory) < n; ++i) usleep(5'000);
}

std::string uninterrupted_csv() {
  const TemporaryDirectory directory;
  directory.write("s.yaml", slow_yaml());
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out", "--jobs", "1"}).status == 0);
  return directory.read("out/explore.csv");
}

}  // namespace

TEST_CASE("explore: the recommendation is brute force") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", explore_yaml());
  const Outcome outcome = run_program(directory, {"explore", "s.yaml", "--json"});
  REQUIRE(outcome.status == 0);
  const json study = json::parse(outcome.out);
  REQUIRE(study.at("points").size() == 6);
  double least = 1e300;
  for (const std::string channels : {"1", "2", "4"})
    for (const std::string rate : {"100Gb/s", "200Gb/s"}) {
      const Outcome one = run_program(
          directory, {"run", "s.yaml", "--set", "nccl.channels=" + channels, "--set",
                      "cluster.fabric.link_rate=" + rate, "--json", "--no-sensitivity"});
      REQUIRE(one.status == 0);
      least = std::min(least, json::parse(one.out).at("objective_us").get<double>());
    }
  CHECK(study.at("best").at("time_us") == least);
  CHECK(study.at("best").at("settings").at("cluster.fabric.link_rate") == "200Gb/s");
  CHECK(study.at("own").at("settings").at("cluster.fabric.link_rate") == "400Gb/s");
  CHECK(study.at("own").at("time_us") < least);
  CHECK(study.at("recommended").at("sensitivity").size() > 0);
  // The default directory is named after the scenario.
  for (const char* name : {"explore.json", "explore.csv", "recommended.yaml", "journal.jsonl"})
    CHECK(directory.has(std::string("railyard-explore/small/") + name));
  CHECK(directory.read("railyard-explore/small/explore.json") == outcome.out);
}

TEST_CASE("explore: the text names the setting, what it gains and what bounds it") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", explore_yaml("busbw"));
  const Outcome outcome = run_program(directory, {"explore", "s.yaml", "-o", "out"});
  REQUIRE(outcome.status == 0);
  CHECK(contains(outcome.out, "Settings by bus bandwidth\n"));
  CHECK(contains(outcome.out, "\nRecommendation\n"));
  CHECK(contains(outcome.out, "What changes the total time"));
  for (const std::string& line : lines(outcome.out)) CHECK(line.size() <= 100);
}

TEST_CASE("explore: points that fail are listed and do not stop the others") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml("explore:\n"
                                       "  vary:\n"
                                       "    ranks.count: [2, 4, 64]\n"));
  const Outcome outcome = run_program(directory, {"explore", "s.yaml", "-o", "out"});
  CHECK(outcome.status == 0);
  CHECK(contains(outcome.out, "1 of 3 settings gave no result\n"));
  CHECK(contains(directory.read("out/explore.csv"), "\n,64,,,,,,,,"));
}

TEST_CASE("explore: a second call runs nothing, --restart everything") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", explore_yaml());
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out"}).status == 0);
  const std::string journal = directory.read("out/journal.jsonl");
  const std::string csv = directory.read("out/explore.csv");
  // Six points, the scenario as it is, and the recommended one's sensitivity.
  CHECK(finished_points(directory) == 8);
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out"}).status == 0);
  CHECK(directory.read("out/journal.jsonl") == journal);
  CHECK(directory.read("out/explore.csv") == csv);
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out", "--restart"}).status == 0);
  CHECK(finished_points(directory) == 8);
  CHECK(directory.read("out/explore.csv") == csv);
}

TEST_CASE("explore: another axis value runs only what is new") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", small_yaml("explore: {vary: {nccl.channels: [1, 2]}}\n"));
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out"}).status == 0);
  const std::size_t before = finished_points(directory);
  directory.write("s.yaml", small_yaml("explore: {vary: {nccl.channels: [1, 2, 3]}}\n"));
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out"}).status == 0);
  CHECK(finished_points(directory) - before <= 2);  // the new point, perhaps its sensitivity
}

TEST_CASE("explore: results do not depend on the number of jobs") {
  const TemporaryDirectory one;
  const TemporaryDirectory three;
  for (const TemporaryDirectory* directory : {&one, &three}) {
    directory->write("s.yaml", explore_yaml());
    const std::string jobs = directory == &one ? "1" : "3";
    REQUIRE(run_program(*directory, {"explore", "s.yaml", "-o", "out", "--jobs", jobs}).status ==
            0);
  }
  for (const char* name : {"out/explore.csv", "out/explore.json", "out/recommended.yaml"})
    CHECK(one.read(name) == three.read(name));
}

TEST_CASE("explore: killed or interrupted, it goes on where it was") {
  const std::string whole = uninterrupted_csv();
  for (const std::string jobs : {"1", "2"})
    for (const int signal : {SIGINT, SIGKILL}) {
      const TemporaryDirectory directory;
      directory.write("s.yaml", slow_yaml());
      const std::vector<std::string> command{"explore", "s.yaml", "-o", "out", "--jobs", jobs};
      Program program(directory, command);
      wait_for_points(directory, 3);
      program.send(signal);
      const Outcome outcome = program.wait();
      CHECK(outcome.status == (signal == SIGINT ? 130 : -SIGKILL));
      if (signal == SIGINT) CHECK(contains(outcome.err, "the same command goes on where it was"));
      CHECK_FALSE(directory.has("out/explore.csv"));
      const std::string kept = directory.read("out/journal.jsonl");
      CHECK(finished_points(directory) >= 3);
      REQUIRE(run_program(directory, command).status == 0);
      CHECK(directory.read("out/journal.jsonl").starts_with(kept.substr(0, kept.rfind('\n') + 1)));
      CHECK(directory.read("out/explore.csv") == whole);
    }
}

TEST_CASE("explore: a torn journal line is run again, everything else is not") {
  const TemporaryDirectory directory;
  directory.write("s.yaml", explore_yaml());
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out", "--jobs", "1"}).status == 0);
  const std::string journal = directory.read("out/journal.jsonl");
  const std::string csv = directory.read("out/explore.csv");
  directory.write("out/journal.jsonl", journal.substr(0, journal.size() * 3 / 5));
  const std::size_t left = finished_points(directory);
  REQUIRE(run_program(directory, {"explore", "s.yaml", "-o", "out", "--jobs", "1"}).status == 0);
  CHECK(left < 8);
  CHECK(directory.read("out/explore.csv") == csv);
}

TEST_CASE("explore: what cannot be explored") {
  const TemporaryDirectory directory;
  directory.write("plain.yaml", small_yaml());
  CHECK(contains(run_program(directory, {"explore", "plain.yaml"}).err,
                 "railyard: plain.yaml: the scenario has no `explore:` block"));
  directory.write("step.yaml", explore_yaml("step_time"));
  CHECK(run_program(directory, {"explore", "step.yaml"}).status == 1);
  directory.write("out/journal.jsonl", "notes\n");
  directory.write("s.yaml", explore_yaml());
  CHECK(run_program(directory, {"explore", "s.yaml", "-o", "out"}).status == 1);
  CHECK(directory.read("out/journal.jsonl") == "notes\n");
}

}  // namespace railyard::tests
