#include "tests/tools/helpers.h"
#include "tests/paths.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace railyard::tests {

using namespace sim::literals;
using scenarios::RunResult;

namespace {

RunResult with_counts(RunResult result) {
  result.machine = "dgx-a100";
  result.profile = "a100-dgx";
  result.messages = 1200;
  result.events = 3456;
  result.solves = 78;
  result.replays = 9;
  result.trace_hash = 0xfedcba9876543210ULL;
  return result;
}

void add_links(RunResult& result) {
  result.busiest_links = {
      {"node0/gpu0->node0/nvswitch0", sim::LinkClass::nvlink, 3_GiB, 0.25,
       sim::gigabytes_per_second(240)},
      {"node0/nic0->leaf/0", sim::LinkClass::nic, 1_MiB, 0.125, sim::gigabytes_per_second(50)}};
  result.idle_links = {{sim::LinkClass::pcie, 16, 16, "node0/gpu0->node0/pcie0"}};
}

sim::Span span(std::uint32_t rank, std::uint16_t stream, std::uint32_t name, sim::Duration start,
               sim::Duration end) {
  sim::Span out;
  out.rank = rank;
  out.stream = stream;
  out.name = name;
  out.kind = stream == 0 ? sim::SpanKind::kernel : sim::SpanKind::collective;
  out.start = sim::Time(start);
  out.end = sim::Time(end);
  return out;
}

scenarios::BucketRow bucket(sim::Bytes size, sim::Duration ready, sim::Duration end) {
  scenarios::BucketRow row;
  row.size = row.sent = size;
  row.parameters = 3;
  row.ready = ready;
  row.start = ready + 10_us;
  row.end = end;
  row.channels = 24;
  row.busbw = 123.456;
  return row;
}

}  // namespace

RunResult ddp_result() {
  RunResult result = with_counts({});
  result.duration = 31_ms;
  result.ranks = 2;
  result.nodes = 1;
  auto& ddp = result.ddp.emplace();
  ddp.iterations = {11_ms, 10'500_us, 9'500_us};
  ddp.step_time = 9'500_us;
  ddp.compute = 8_ms;
  ddp.compute_alone = 7'800_us;
  ddp.forward = 2'500_us;
  ddp.backward = 5_ms;
  ddp.after_backward = 500_us;
  ddp.communication = 4_ms;
  ddp.exposed = 1_ms;
  ddp.exposing_bucket = 1;
  ddp.bound_by = "compute";
  ddp.buckets = {bucket(1_MiB, 4_ms, 5_ms), bucket(25_MiB, 7_ms, 9_ms)};
  ddp.buckets[1].exposed = 1_ms;
  ddp.bucket_bytes = {{26_MiB}, {1_MiB, 25_MiB}, {1_MiB, 25_MiB}};
  ddp.rebuild_before_iteration = 2;
  ddp.samples_per_second = 26947.4;
  ddp.model = "resnet50";
  ddp.model_parameters = 25557032;
  result.sensitivity = {{"nvlink bandwidth", 0.1, 9'500_us, 9'405_us},
                        {"compute speed", 0.1, 9'500_us, 8'740_us},
                        {"smp bandwidth", 0.1, 9'500_us, 9'500_us}};
  result.notes = {"the first note"};
  result.stream_names = {"compute", "communication"};
  result.span_names = {"conv", "AllReduce"};
  result.spans = {span(0, 0, 0, 0_us, 100_us), span(0, 0, 0, 100_us, 250_us),
                  span(0, 1, 1, 120_us, 300_us), span(1, 0, 0, 0_us, 90_us)};
  add_links(result);
  return result;
}

RunResult collective_result() {
  RunResult result = with_counts({});
  result.ranks = 8;
  result.nodes = 1;
  scenarios::CollectiveRow row;
  row.size = 1_KiB;
  row.count = 256;
  row.dtype = "float";
  row.group = "world";
  row.ranks = 8;
  row.algorithm = sim::Algorithm::tree;
  row.protocol = sim::Protocol::ll;
  row.channels = 2;
  row.time = 12'345_ns;
  row.algbw = 0.0829;
  row.busbw = 0.145;
  result.collectives.push_back(row);
  row.size = 2_KiB;
  row.count = 512;
  row.time = 123'456_ns;
  row.algbw = 165.888;
  row.busbw = 290.304;
  result.collectives.push_back(row);
  row.collective = sim::Collective::all_gather;
  row.dtype = "half";
  row.size = sim::bytes(8'589'934'592);
  row.count = 536'870'912;
  row.time = 42'713'400_ns;
  row.algbw = 201.11;
  row.busbw = 188.54;
  result.collectives.push_back(row);
  return result;
}

RunResult flow_result() {
  RunResult result = with_counts({});
  result.ranks = 4;
  result.nodes = 4;
  for (std::uint32_t i = 0; i < 4; ++i)
    result.flows.push_back({i, (i + 1) % 4, 1_MiB, 5_us, 5_us + sim::microseconds(10 * (i + 1))});
  result.duration = 45_us;
  return result;
}

std::string small_yaml(std::string_view more) {
  return "railyard: 1\n"
         "name: small\n"
         "cluster:\n"
         "  machine: flat\n"
         "  nodes: 4\n"
         "  fabric: {kind: switch, link_rate: 400Gb/s}\n"
         "nccl: {algorithm: Ring, protocol: plain, channels: 1}\n"
         "collectives:\n"
         "  - {collective: AllReduce, sizes: [64KiB, 1MiB]}\n" +
         std::string(more);
}

scenarios::Scenario small_scenario() {
  auto scenario = scenarios::scenario_from_text(small_yaml(), "small.yaml", {.read_files = false});
  if (!scenario.ok()) throw std::runtime_error(scenario.error().text());
  return std::move(scenario).value();
}

TemporaryDirectory::TemporaryDirectory() {
  static std::atomic<int> number{0};
  directory_ = std::filesystem::temp_directory_path() /
               ("railyard-tools-" + std::to_string(getpid()) + "-" + std::to_string(number++));
  std::filesystem::create_directories(directory_);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, std::string_view text) const {
  const std::filesystem::path file = directory_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

std::string TemporaryDirectory::read(const std::string& name) const {
  std::ifstream file(directory_ / name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string TemporaryDirectory::path(const std::string& name) const {
  return (directory_ / name).string();
}

bool TemporaryDirectory::has(const std::string& name) const {
  return std::filesystem::exists(directory_ / name);
}

std::vector<std::string> TemporaryDirectory::names() const {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(directory_))
    out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

Program::Program(const TemporaryDirectory& directory, const std::vector<std::string>& arguments)
    : directory_(directory) {
  static std::atomic<int> number{0};
  name_ = ".program-" + std::to_string(number++);
  const std::string out = directory.path(name_ + ".out");
  const std::string err = directory.path(name_ + ".err");
  std::vector<std::string> words{RAILYARD_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  const int to_out = open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int to_err = open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (chdir(directory.path().c_str()) != 0 || dup2(to_out, 1) < 0 || dup2(to_err, 2) < 0)
    _exit(126);
  execv(argv.front(), argv.data());
  _exit(127);
}

void Program::send(int signal) const { kill(pid_, signal); }

Outcome Program::wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  Outcome outcome;
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  outcome.out = directory_.read(name_ + ".out");
  outcome.err = directory_.read(name_ + ".err");
  std::error_code ignored;
  std::filesystem::remove(directory_.path(name_ + ".out"), ignored);
  std::filesystem::remove(directory_.path(name_ + ".err"), ignored);
  return outcome;
}

Outcome run_program(const TemporaryDirectory& directory,
                    const std::vector<std::string>& arguments) {
  return Program(directory, arguments).wait();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace railyard::tests
