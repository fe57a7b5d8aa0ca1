#include "calibrate/readers/any_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

void add_bytes(LogSection& section, std::int64_t bytes) {
  section.least_bytes = std::min(section.least_bytes.value_or(bytes), bytes);
  section.most_bytes = std::max(section.most_bytes.value_or(bytes), bytes);
}

void add_detail(LogSection& section, std::string_view what, std::string_view value) {
  if (!value.empty()) section.details.push_back(fmt::format("{} {}", what, excerpt(value)));
}

std::vector<LogSection> sections(const NcclTestsLog& log) {
  std::vector<LogSection> all;
  for (const NcclTestsTable& table : log.tables) {
    LogSection section;
    section.test = table.program;
    section.collective = table.collective;
    if (table.collective) section.collective_from = sim::to_text(table.collective_from);
    section.ranks = table.rank_count;
    section.nodes = table.node_count;
    for (const NcclTestsRank& rank : table.ranks) add_distinct(section.devices, rank.gpu);
    section.rows = table.rows.size();
    for (const NcclTestsRow& row : table.rows) add_bytes(section, row.bytes);
    std::vector<std::string> types;
    for (const NcclTestsRow& row : table.rows) add_distinct(types, row.datatype);
    add_detail(section, "type", topologies::list_of(types));
    add_detail(section, "NCCL", table.nccl);
    if (table.process_count > 0)
      section.details.push_back(
          fmt::format("{} process{}", table.process_count, table.process_count == 1 ? "" : "es"));
    section.line = table.line;
    all.push_back(std::move(section));
  }
  return all;
}

std::vector<LogSection> sections(const PerftestLog& log) {
  std::vector<LogSection> all;
  for (const PerftestTable& table : log.tables) {
    LogSection section;
    section.test = table.program.empty() ? table.test : table.program;
    section.ranks = 2;
    add_distinct(section.devices, table.setting("Device"));
    add_distinct(section.devices, table.gpu);
    section.rows = table.rows.size();
    for (const PerftestRow& row : table.rows) add_bytes(section, row.bytes);
    add_detail(section, "link", table.setting("Link type"));
    add_detail(section, "queue pairs", table.setting("Number of qps"));
    add_detail(section, "MTU", table.setting("Mtu"));
    if (table.bidirectional) section.details.emplace_back("bidirectional");
    if (table.other_end) section.details.emplace_back("the other end of a run above");
    section.line = table.line;
    all.push_back(std::move(section));
  }
  return all;
}

std::vector<LogSection> sections(const NvbandwidthLog& log) {
  std::vector<LogSection> all;
  for (const NvbandwidthTest& test : log.tests) {
    LogSection section;
    section.test = test.name;
    for (const NvbandwidthDevice& device : log.devices) add_distinct(section.devices, device.name);
    section.rows = test.matrix.measured();
    add_detail(section, "nvbandwidth", log.version);
    add_detail(section, "driver", log.driver);
    section.line = test.line;
    all.push_back(std::move(section));
  }
  return all;
}

std::vector<LogSection> sections(const P2pBandwidthLog& log) {
  std::vector<LogSection> all;
  for (const P2pMatrix& matrix : log.matrices) {
    LogSection section;
    section.test = matrix.title;
    for (const P2pDevice& device : log.devices) add_distinct(section.devices, device.name);
    section.rows = matrix.matrix.measured();
    if (matrix.latency)
      section.details.emplace_back(matrix.host_time ? "launch by the host" : "by the GPU");
    section.line = matrix.matrix.line;
    all.push_back(std::move(section));
  }
  return all;
}

std::vector<LogSection> sections(const OsuLog& log) {
  std::vector<LogSection> all;
  for (const OsuTable& table : log.tables) {
    LogSection section;
    section.test = table.program.empty() ? table.title : table.program;
    section.collective = table.collective;
    section.ranks = table.ranks;
    section.nodes = table.nodes;
    section.rows = table.rows.size();
    for (const OsuRow& row : table.rows) add_bytes(section, row.bytes);
    add_detail(section, "OSU", table.version);
    add_detail(section, "on", table.accelerator);
    add_detail(section, "buffers", table.placement);
    section.line = table.line;
    all.push_back(std::move(section));
  }
  return all;
}

std::vector<LogSection> sections(const KinetoTrace& trace) {
  LogSection section;
  section.test = "PyTorch profiler";
  section.ranks = trace.world_size;
  for (const std::string& device : trace.devices) add_distinct(section.devices, device);
  section.rows = trace.collectives.size();
  for (const KinetoCollective& call : trace.collectives)
    if (call.bytes) add_bytes(section, *call.bytes);
  if (trace.rank >= 0) section.details.push_back(fmt::format("rank {}", trace.rank));
  add_detail(section, "NCCL", trace.nccl);
  section.details.push_back(fmt::format("{} compute kernels of {:.3f} ms", trace.compute.count,
                                        static_cast<double>(trace.compute.ns) / 1e6));
  section.details.push_back(
      fmt::format("NCCL kernels of {:.3f} ms", static_cast<double>(trace.communication.ns) / 1e6));
  return {section};
}

template <typename Log>
sim::Result<AnyLog> any(sim::Result<Log> log) {
  if (!log.ok()) return log.error();
  return AnyLog(std::move(log).value());
}

}  // namespace

sim::Result<AnyLog> read_any_log(std::string_view text, std::string_view name) {
  const Identified what = identify(text);
  switch (what.kind) {
    case LogKind::nccl_tests:
    case LogKind::nccl_tests_json: return any(read_nccl_tests(text, name));
    case LogKind::perftest:
    case LogKind::perftest_json: return any(read_perftest(text, name));
    case LogKind::nvbandwidth:
    case LogKind::nvbandwidth_json: return any(read_nvbandwidth(text, name));
    case LogKind::p2p_bandwidth: return any(read_p2p_bandwidth(text, name));
    case LogKind::osu: return any(read_osu(text, name));
    case LogKind::kineto: return any(read_kineto(text, name));
    case LogKind::unknown:
    case LogKind::empty:
    case LogKind::gzip:
    case LogKind::nccom_test:
    case LogKind::execution_trace:
    case LogKind::nccl_log: break;
  }
  std::string message = "this is " + std::string(describe(what.kind));
  if (what.kind == LogKind::unknown)
    message +=
        " (known: nccl-tests, perftest, nvbandwidth, p2pBandwidthLatencyTest, OSU, Kineto traces)";
  if (what.kind == LogKind::nccl_log) message += "; `railyard nccl compare` reads it";
  if (what.line == 0) return sim::bad_input(message, std::string(name));
  return error_at(std::string(name), what.line, message);
}

const std::vector<Note>& notes_of(const AnyLog& log) {
  return std::visit([](const auto& each) -> const std::vector<Note>& { return each.notes; }, log);
}

std::vector<LogSection> sections_of(const AnyLog& log) {
  return std::visit([](const auto& each) { return sections(each); }, log);
}

std::vector<Measurement> measurements(const AnyLog& log) {
  if (const auto* trace = std::get_if<KinetoTrace>(&log))
    return measurements(merge_kineto({*trace}));
  return std::visit(
      [](const auto& each) {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, KinetoTrace>)
          return std::vector<Measurement>{};
        else
          return measurements(each);
      },
      log);
}

}  // namespace railyard::calibrate
