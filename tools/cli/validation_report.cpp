#include "tools/cli/validation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/cli/json_parts.h"
#include "tools/cli/table.h"

namespace railyard::cli {

using calibrate::ErrorSummary;
using sim::SizeBand;

namespace {

constexpr std::size_t kWorst = 10;
constexpr std::array kBands{SizeBand::small, SizeBand::medium, SizeBand::large};

// Errors and noise of one line of the table, by band.
struct Group {
  std::array<std::vector<double>, kBands.size()> errors;
  std::array<std::vector<double>, kBands.size()> noise;
  std::size_t runs = 0;

  void add(const Prediction& prediction) {
    ++runs;
    for (const PredictedRow& row : prediction.rows)
      if (!row.spike) errors[index(row.size)].push_back(row.error());
    for (const auto& [size, difference] :
         calibrate::column_noise(prediction.run.rows, prediction.run.rows_in_place))
      noise[index(size)].push_back(difference);
  }
  static std::size_t index(sim::Bytes size) {
    return static_cast<std::size_t>(sim::size_band(size));
  }
};

std::string percent(double share) { return fmt::format("{:.1f}", share * 100); }

std::vector<Column> columns(const std::string& first) {
  std::vector<Column> out{
      {first, Align::left}, {"runs"},  {"band", Align::left}, {"rows"},
      {"median %"},         {"p90 %"}, {"worst %"},           {"noise median/p90 %"}};
  return out;
}

void add_group(const std::string& name, const Group& group, Table& table) {
  bool first = true;
  for (std::size_t b = 0; b < kBands.size(); ++b) {
    const ErrorSummary error = calibrate::summarize(group.errors[b]);
    if (error.count == 0) continue;
    const ErrorSummary noise = calibrate::summarize(group.noise[b]);
    table.add({first ? name : "", first ? fmt::format("{}", group.runs) : "",
               std::string(sim::to_text(kBands[b])), fmt::format("{}", error.count),
               percent(error.median), percent(error.p90), percent(error.worst),
               noise.count == 0 ? "-" : percent(noise.median) + " / " + percent(noise.p90)});
    first = false;
  }
}

using Groups = std::map<std::string, Group>;

std::string table_of(const std::string& title, const std::string& first, const Groups& groups) {
  if (groups.empty()) return {};
  Table table(columns(first));
  for (const auto& [name, group] : groups) add_group(name, group, table);
  return title + "\n" + table.text("  ") + "\n";
}

std::string use_of(const Prediction& prediction) {
  return prediction.fitted ? "fitted" : "unfitted";
}

// What kind of platform: the node's inside for one node, the network for several.
std::string class_of(const Prediction& prediction) {
  const scenarios::Platform& platform = prediction.run.platform;
  if (platform.nodes.value_or(1) > 1)
    return "nodes over " +
           (platform.fabric ? std::string(sim::to_text(*platform.fabric)) : std::string("?"));
  const scenarios::Intra intra = platform.intra.value_or(scenarios::Intra::none);
  const bool nvlink = intra == scenarios::Intra::nvswitch ||
                      intra == scenarios::Intra::nvlink_direct ||
                      intra == scenarios::Intra::nvlink_bridge;
  return nvlink ? "one node, NVLink" : "one node, PCIe";
}

struct Tables {
  Groups all;          // fitted, unfitted
  Groups by_class;     // "one node, NVLink  fitted"
  Groups by_platform;  // "alps  unfitted"
  Groups by_collective;
  Groups apart;  // runs that do not count, by reason
  Groups everything;
};

Tables sort_in(const std::vector<Prediction>& predictions) {
  Tables tables;
  for (const Prediction& prediction : predictions) {
    if (!prediction.failed.empty()) continue;
    tables.everything[use_of(prediction)].add(prediction);
    if (!prediction.not_scored.empty()) {
      tables.apart[prediction.not_scored].add(prediction);
      continue;
    }
    tables.all[use_of(prediction)].add(prediction);
    tables.by_class[class_of(prediction) + "  " + use_of(prediction)].add(prediction);
    tables.by_platform[prediction.run.platform.name + "  " + use_of(prediction)].add(prediction);
    tables.by_collective[prediction.run.collective + "  " + use_of(prediction)].add(prediction);
  }
  return tables;
}

struct Ranked {
  const Prediction* prediction = nullptr;
  const PredictedRow* row = nullptr;
};

std::vector<Ranked> worst_of(const std::vector<Prediction>& predictions) {
  std::vector<Ranked> worst;
  for (const Prediction& prediction : predictions) {
    if (!prediction.not_scored.empty() || !prediction.failed.empty()) continue;
    const PredictedRow* row = nullptr;  // one row per run, so that one run does not fill the list
    for (const PredictedRow& each : prediction.rows)
      if (!each.spike && (row == nullptr || each.error() > row->error())) row = &each;
    if (row != nullptr) worst.push_back({&prediction, row});
  }
  std::ranges::sort(
      worst, [](const Ranked& a, const Ranked& b) { return a.row->error() > b.row->error(); });
  if (worst.size() > kWorst) worst.resize(kWorst);
  return worst;
}

std::string worst_text(const std::vector<Prediction>& predictions) {
  Table table({{"run", Align::left},
               {"size"},
               {"measured us"},
               {"predicted us"},
               {"error %"},
               {"choice", Align::left},
               {"to look at", Align::left}});
  for (const Ranked& each : worst_of(predictions))
    table.add({each.prediction->run.id, sim::to_text(each.row->size),
               fmt::format("{:.1f}", each.row->time_us),
               fmt::format("{:.1f}", each.row->predicted_us),
               fmt::format("{:+.0f}", (each.row->predicted_us / each.row->time_us - 1) * 100),
               fmt::format("{} {}", to_text(each.row->algorithm), to_text(each.row->protocol)),
               likely_cause(*each.prediction, *each.row)});
  return table.empty() ? ""
                       : "Worst prediction of each run, the ten worst\n" + table.text("  ") + "\n";
}

std::string failures_text(const std::vector<Prediction>& predictions) {
  std::string text;
  for (const Prediction& prediction : predictions)
    if (!prediction.failed.empty())
      text += fmt::format("  {}: {}\n", prediction.run.id, prediction.failed);
  return text.empty() ? "" : "Not predicted\n" + text + "\n";
}

std::string rows_text(const std::vector<Prediction>& predictions) {
  std::string text;
  for (const Prediction& prediction : predictions) {
    text += fmt::format("{}  ({}{}{})\n", prediction.run.id, prediction.profile,
                        prediction.fitted ? ", fitted" : "",
                        prediction.not_scored.empty() ? "" : ", " + prediction.not_scored);
    Table table({{"bytes"},
                 {"measured us"},
                 {"predicted us"},
                 {"error %"},
                 {"algorithm", Align::left},
                 {"protocol", Align::left},
                 {"channels"},
                 {"", Align::left}});
    for (const PredictedRow& row : prediction.rows)
      table.add({fmt::format("{}", row.size.raw()), fmt::format("{:.2f}", row.time_us),
                 fmt::format("{:.2f}", row.predicted_us),
                 fmt::format("{:+.1f}", (row.predicted_us / row.time_us - 1) * 100),
                 std::string(to_text(row.algorithm)), std::string(to_text(row.protocol)),
                 fmt::format("{}", row.channels), row.spike ? "spike" : ""});
    text += table.text("  ") + "\n";
  }
  return text;
}

std::size_t count_spikes(const std::vector<Prediction>& predictions) {
  std::size_t count = 0;
  for (const Prediction& prediction : predictions)
    count += static_cast<std::size_t>(std::ranges::count_if(prediction.rows, &PredictedRow::spike));
  return count;
}

}  // namespace

std::string likely_cause(const Prediction& prediction, const PredictedRow& row) {
  const scenarios::Platform& platform = prediction.run.platform;
  const SizeBand band = sim::size_band(row.size);
  const bool network = platform.nodes.value_or(1) > 1;
  const bool too_low = row.predicted_us < row.time_us;
  if (band == SizeBand::small)
    return network ? "network hop latency" : too_low ? "host launch floor" : "hop latency";
  if (prediction.run.collective == "AllToAll" || prediction.run.collective == "SendRecv")
    return network ? "sharing of NICs, fabric contention" : "copy rate of send/receive";
  if (prediction.run.collective == "Broadcast" || prediction.run.collective == "Reduce")
    return "forwarding grain of chains";
  if (network && band == SizeBand::medium)
    return row.algorithm == sim::Algorithm::tree ? "NIC shared by tree children; proxy cost"
                                                 : "proxy cost by message size; the choice";
  if (platform.intra == scenarios::Intra::shm || platform.intra == scenarios::Intra::pcie_host)
    return "host memory and PCIe rates";
  return network ? "NIC rate, channel rate" : "link rate, channel rate";
}

std::string validation_text(const std::vector<Prediction>& predictions, bool rows) {
  const Tables tables = sort_in(predictions);
  std::string text = rows ? rows_text(predictions) : "";
  text += table_of("By platform: |predicted / measured - 1|", "platform", tables.by_platform);
  text += table_of("By class of platform", "class", tables.by_class);
  text += table_of("By collective", "collective", tables.by_collective);
  text += table_of("All runs that count", "", tables.all);
  text += table_of("Tabled apart", "why", tables.apart);
  text += table_of("All runs, these included", "", tables.everything);
  text += worst_text(predictions);
  text += failures_text(predictions);
  text += fmt::format(
      "{} runs, {} of them predicted, {} spikes left out. S < 64 KiB, M up to 16 MiB, L above; "
      "noise: in place against out of place.\n",
      predictions.size(),
      std::ranges::count_if(predictions, [](const Prediction& p) { return p.failed.empty(); }),
      count_spikes(predictions));
  return text;
}

std::string validation_json(const std::vector<Prediction>& predictions) {
  Json out{{"schema", 1}, {"rows", Json::array()}, {"not_predicted", Json::array()}};
  for (const Prediction& prediction : predictions) {
    if (!prediction.failed.empty())
      out["not_predicted"].push_back({{"run", prediction.run.id}, {"why", prediction.failed}});
    for (const PredictedRow& row : prediction.rows)
      out["rows"].push_back({{"run", prediction.run.id},
                             {"platform", prediction.run.platform.name},
                             {"collective", prediction.run.collective},
                             {"bytes", row.size.raw()},
                             {"band", std::string(to_text(sim::size_band(row.size)))},
                             {"time_us", row.time_us},
                             {"predicted_us", row.predicted_us},
                             {"algorithm", std::string(to_text(row.algorithm))},
                             {"protocol", std::string(to_text(row.protocol))},
                             {"channels", row.channels},
                             {"fitted", prediction.fitted},
                             {"spike", row.spike},
                             {"profile", prediction.profile},
                             {"apart", prediction.not_scored}});
  }
  return dump(out);
}

}  // namespace railyard::cli
