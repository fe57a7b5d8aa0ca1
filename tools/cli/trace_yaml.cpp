#include "tools/cli/trace_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "calibrate/traces/ddp_network.h"
#include "scenarios/scenario.h"
#include "sim/enum_table.h"

namespace railyard::cli {
namespace {

constexpr std::size_t kLongestText = 80;

std::string pass_yaml(const models::MeasuredPass& pass) {
  const auto ns = [](sim::Duration time) { return yaml_time(time.count() / 1'000); };
  if (pass.before.count() == 0 && pass.after.count() == 0) return ns(pass.time);
  return fmt::format("{{before: {}, time: {}, after: {}}}", ns(pass.before), ns(pass.time),
                     ns(pass.after));
}

std::string run_yaml(const calibrate::MeasuredRun& run) {
  return pass_yaml({sim::nanoseconds(run.before_ns), sim::nanoseconds(run.kernel_ns),
                    sim::nanoseconds(run.after_ns)});
}

std::string name_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + yaml_quoted(name);
  return "[" + text + "]";
}

std::string network_yaml(const models::NetworkSpec& network) {
  std::string text = fmt::format("  model:\n    name: {}\n", yaml_quoted(network.name));
  text += fmt::format("    buffers: {{fp32_elements: {}, int64_elements: {}}}\n",
                      network.buffers.fp32_elements, network.buffers.int64_elements);
  text += "    parameters:  # in the reverse of their gradients' arrival\n";
  for (const models::Parameter& each : network.parameters)
    text += fmt::format(
        "      - {{name: {}, elements: {}{}}}\n", yaml_quoted(each.name), each.elements,
        each.dtype == models::Dtype::fp32 ? std::string()
                                          : fmt::format(", dtype: {}", sim::to_text(each.dtype)));
  text += "    layers:  # in the order of forward; times of kernels, and of the host around them\n";
  for (const models::LayerSpec& each : network.layers)
    text += fmt::format(
        "      - {{name: {}, kind: {}, parameters: {},\n         forward: {}, "
        "backward: {}}}\n",
        yaml_quoted(each.name), sim::to_text(each.kind), name_list(each.parameters),
        pass_yaml(each.measured->forward), pass_yaml(each.measured->backward));
  return text;
}

// Of PyTorch's optimizers those that a scenario knows; what they keep and move is not measured.
std::string_view optimizer_of(std::string_view torch) {
  if (torch == "Adam") return "adam";
  if (torch == "AdamW") return "adamw";
  return "sgd";
}

std::string call_yaml(const calibrate::ReplayItem& item, const std::string& group) {
  const std::string before = yaml_time(item.run.before_ns);
  const calibrate::ReplayCall& call = item.call;
  const std::string where =
      group == scenarios::kWorld ? std::string() : fmt::format(", group: {}", yaml_quoted(group));
  if (!call.collective)
    return fmt::format("{{before: {}, call: {}, time: {}{}}}", before, yaml_quoted(call.name),
                       yaml_time(call.fixed_ns), where);
  const auto dtype = calibrate::dtype_of(call.dtype).value_or(models::Dtype::int8);
  return fmt::format("{{before: {}, call: {}, size: {}B, dtype: {}{}}}", before,
                     sim::to_text(*call.collective), call.bytes, sim::to_text(dtype), where);
}

std::string item_yaml(const calibrate::ReplayItem& item, const calibrate::TracedReplay& replay,
                      const std::vector<std::string>& groups) {
  using calibrate::ReplayKind;
  if (item.kind == ReplayKind::call) return call_yaml(item, groups[item.call.group]);
  if (item.kind == ReplayKind::wait) return fmt::format("{{wait: {}}}", item.waits_for);
  if (item.kind == ReplayKind::synchronize) return "{synchronize: true}";
  std::string text = fmt::format("{{before: {}", yaml_time(item.run.before_ns));
  if (item.run.count > 0)
    text += fmt::format(", kernel: {}, after: {}, name: \"{} launch{}\", bound: {}",
                        yaml_time(item.run.kernel_ns), yaml_time(item.run.after_ns), item.run.count,
                        item.run.count == 1 ? "" : "es", item.compute_bound ? "compute" : "memory");
  if (item.stream > 0)
    text += fmt::format(", stream: {}", yaml_quoted(replay.streams[item.stream]));
  return text + "}";
}

// "[0, 1, 2]"; empty if it is no such list.
std::vector<std::int64_t> ranks_in(std::string_view text) {
  std::vector<std::int64_t> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at < '0' || *at > '9') {
      if (std::string_view("[], ").find(*at) == std::string_view::npos) return {};
      ++at;
      continue;
    }
    std::int64_t rank = 0;
    const auto [stop, failed] = std::from_chars(at, end, rank);
    if (failed != std::errc()) return {};
    ranks.push_back(rank);
    at = stop;
  }
  return ranks;
}

// The stride if the ranks are one group of a regular division of the world, else 0.
std::int64_t stride_of(const std::vector<std::int64_t>& ranks, std::int64_t world) {
  if (ranks.size() < 2) return 0;
  const auto size = static_cast<std::int64_t>(ranks.size());
  const std::int64_t stride = ranks[1] - ranks[0];
  if (stride < 1 || stride > world || world % (size * stride) != 0) return 0;
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (ranks[i] - ranks[i - 1] != stride) return 0;
  return ranks[0] % (size * stride) < stride && ranks.back() < world ? stride : 0;
}

}  // namespace

std::string yaml_quoted(std::string_view text) {
  using Json = nlohmann::json;
  std::string line(text.substr(0, kLongestText));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  return Json(line).dump();
}

std::string yaml_time(std::int64_t ns) {
  const bool small = ns < 1'000'000;
  std::string text = small ? fmt::format("{:.3f}", static_cast<double>(ns) / 1e3)
                           : fmt::format("{:.4f}", static_cast<double>(ns) / 1e6);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + (small ? "us" : "ms");
}

std::string yaml_comment(std::string_view text) {
  std::string out = "# ";
  for (const char c : text)
    out += static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~' ? '?' : c;
  return out + "\n";
}

std::string ddp_yaml(const DdpParts& parts) {
  const calibrate::TracedDdp& traced = *parts.traced;
  const auto dtype = calibrate::dtype_of(traced.dtype);
  const std::string precision = dtype == models::Dtype::fp16   ? "fp16"
                                : dtype == models::Dtype::bf16 ? "bf16"
                                                               : "fp32";
  std::string text = "ddp:\n  batch_per_gpu: 1  # a sample is the whole batch of the trace\n";
  text += fmt::format("  precision: {}  # of the gradients; kernels were measured\n", precision);
  text += fmt::format("  optimizer: {}\n", optimizer_of(traced.optimizer_name));
  text += "  iterations: 3\n";
  if (parts.buckets->bucket_cap_mb)
    text += fmt::format("  bucket_cap_mb: {}\n", *parts.buckets->bucket_cap_mb);
  if (traced.bucket_view) text += "  gradient_as_bucket_view: true\n";
  text += "  measured:  # around the layers; host times are per gradient and per collective\n";
  text += fmt::format("    start: {}\n    optimizer: {}\n", run_yaml(traced.start),
                      run_yaml(traced.optimizer));
  text += fmt::format("    hook: {}\n    collective: {}\n    copy_back: {}\n",
                      yaml_time(traced.hook_ns), yaml_time(traced.collective_ns),
                      yaml_time(traced.copy_back_ns));
  return text + network_yaml(*parts.network);
}

std::string replay_yaml(const calibrate::TracedReplay& replay, std::string_view name) {
  std::vector<std::string> groups;
  for (const calibrate::ReplayGroup& group : replay.groups) groups.push_back(group.name);
  std::string text = fmt::format("replay:\n  name: {}\n  iterations: 3\n", yaml_quoted(name));
  for (const auto& [key, items] :
       {std::pair("forward", &replay.forward), std::pair("backward", &replay.backward),
        std::pair("after_backward", &replay.after_backward)}) {
    if (items->empty()) continue;
    text += fmt::format("  {}:\n", key);
    for (const calibrate::ReplayItem& item : *items)
      text += "    - " + item_yaml(item, replay, groups) + "\n";
  }
  return text;
}

GroupNames name_groups(const std::vector<calibrate::ReplayGroup>& groups, std::int64_t world) {
  GroupNames out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const calibrate::ReplayGroup& group = groups[g];
    if (group.name.empty() || group.size == world) {
      out.names.emplace_back(scenarios::kWorld);
      continue;
    }
    const std::vector<std::int64_t> ranks = ranks_in(group.ranks);
    const std::string name = fmt::format("group {}", g);
    const std::int64_t stride = stride_of(ranks, world);
    const bool inside = !ranks.empty() && ranks.back() < world;
    if (stride > 0) {
      out.yaml += fmt::format("    {}: {{size: {}, stride: {}}}\n", name, ranks.size(), stride);
    } else if (inside) {
      out.yaml += fmt::format("    {}: [{}]\n", name, fmt::join(ranks, ", "));
      out.notes.push_back(
          fmt::format("{} is no regular division of the ranks: only the ranks that "
                      "the trace names communicate in it",
                      name));
    } else if (group.size > 0 && world % group.size == 0) {
      out.yaml += fmt::format("    {}: {{size: {}}}\n", name, group.size);
      out.notes.push_back(
          fmt::format("the trace does not say which ranks are in {}; neighbours "
                      "are taken",
                      name));
    } else {
      out.names.emplace_back(scenarios::kWorld);
      out.notes.push_back(
          fmt::format("a group of {} ranks does not fit {} ranks: all of them are "
                      "taken",
                      group.size, world));
      continue;
    }
    out.names.push_back(name);
  }
  return out;
}

}  // namespace railyard::cli
