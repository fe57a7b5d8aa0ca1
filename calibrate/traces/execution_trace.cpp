#include "calibrate/traces/execution_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "calibrate/readers/json_text.h"
#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

constexpr std::array<std::string_view, 2> kSchemas{"1.0.", "1.1."};
// Calls of c10d that put no data on the wire.
constexpr std::array<std::string_view, 3> kSilent{"wait", "init", "barrier"};

struct TypeName {
  std::string_view schema_name, torch_name;
};
constexpr std::array kTypeNames{TypeName{"float", "Float"},
                                TypeName{"double", "Double"},
                                TypeName{"c10::Half", "Half"},
                                TypeName{"c10::BFloat16", "BFloat16"},
                                TypeName{"int", "Int"},
                                TypeName{"long int", "Long"},
                                TypeName{"long", "Long"},
                                TypeName{"signed char", "Char"},
                                TypeName{"unsigned char", "Byte"},
                                TypeName{"bool", "Bool"}};

// "GenericList[Tensor(float)]" -> "Float"
std::string type_in(std::string_view text) {
  const std::size_t open = text.find("Tensor(");
  if (open == text.npos) return {};
  const std::string_view rest = text.substr(open + 7);
  const std::string_view name = rest.substr(0, rest.find(')'));
  for (const TypeName& each : kTypeNames)
    if (each.schema_name == name) return std::string(each.torch_name);
  return std::string(name);
}

// Elements of all tensors in a value: tuples (id, storage, offset, elements, size, device), however
// deep in lists. JSON is read to a bounded depth, so this recursion is, too.
std::int64_t elements_in(const Json& value) {
  constexpr std::size_t kTuple = 6, kElements = 3;
  if (!value.is_array()) return 0;
  if (value.size() == kTuple && value.back().is_string() && value[kElements].is_number_integer())
    return std::clamp<std::int64_t>(value[kElements].get<std::int64_t>(), 0, std::int64_t{1} << 53);
  std::int64_t sum = 0;
  for (const Json& each : value) sum = std::min(sum + elements_in(each), std::int64_t{1} << 53);
  return sum;
}

const Json& attribute(const Json& node, std::string_view name) {
  static const Json none;
  const Json& attributes = json_at(node, "attrs");
  if (!attributes.is_array()) return none;
  for (const Json& each : attributes)
    if (json_string(each, "name") == name) return json_at(each, "value");
  return none;
}

std::string text_attribute(const Json& node, std::string_view name) {
  const Json& value = attribute(node, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::int64_t number_attribute(const Json& node, std::string_view name) {
  const Json& value = attribute(node, name);
  return value.is_number_integer() ? value.get<std::int64_t>() : -1;
}

void take_attributes(const Json& node, KinetoCollective& out) {
  out.name = text_attribute(node, "collective_name");
  out.dtype = text_attribute(node, "dtype");
  out.elements_in = number_attribute(node, "in_msg_nelems");
  out.elements_out = number_attribute(node, "out_msg_nelems");
  out.group = text_attribute(node, "pg_name");
  out.group_size = number_attribute(node, "pg_size");
  const std::string split = text_attribute(node, "in_split_size");
  out.uneven = !split.empty() && split != "[]";
}

// The older schema: the name is the only text among the inputs, the group's size the last number.
void take_inputs(const Json& node, KinetoCollective& out) {
  const Json& values = json_at(json_at(node, "inputs"), "values");
  const Json& types = json_at(json_at(node, "inputs"), "types");
  if (!values.is_array() || values.empty()) return;
  for (const Json& each : values)
    if (each.is_string()) out.name = each.get<std::string>();
  if (values.back().is_number_integer()) out.group_size = values.back().get<std::int64_t>();
  out.elements_in = elements_in(values.front());
  out.elements_out = elements_in(json_at(json_at(node, "outputs"), "values"));
  if (types.is_array() && !types.empty() && types.front().is_string())
    out.dtype = type_in(types.front().get_ref<const std::string&>());
}

// False: it is no communication.
bool take_call(const Json& node, KinetoCollective& out) {
  take_attributes(node, out);
  if (out.name.empty()) take_inputs(node, out);
  if (out.name.empty() || std::find(kSilent.begin(), kSilent.end(), out.name) != kSilent.end())
    return false;
  out.collective = collective_of(out.name);
  out.bytes = whole_bytes(out);
  return true;
}

sim::Result<void> check_schema(const Json& document, ExecutionTrace& out) {
  out.schema = json_string(document, "schema");
  for (const std::string_view known : kSchemas)
    if (out.schema.starts_with(known)) return {};
  return sim::bad_input(
      fmt::format("an execution trace of schema '{}'; 1.0.x and 1.1.x are what can be read",
                  excerpt(out.schema, 30)),
      out.source);
}

void collect(std::vector<std::pair<std::int64_t, const Json*>>& nodes, ExecutionTrace& out) {
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::size_t unsized = 0;
  for (const auto& [id, node] : nodes) {
    const std::string name = json_string(*node, "name");
    if (name.starts_with("ProfilerStep#")) {
      if (!out.steps.empty()) out.steps.back().last = out.collectives.size();
      out.steps.push_back({name, out.collectives.size(), 0});
    }
    KinetoCollective call;
    if (name != "record_param_comms" || !take_call(*node, call)) continue;
    out.ranks = std::max(out.ranks, call.group_size);
    if (!call.bytes) ++unsized;
    out.collectives.push_back(std::move(call));
  }
  if (out.steps.empty()) out.steps.push_back({"whole trace", 0, 0});
  out.steps.back().last = out.collectives.size();
  if (unsized > 0)
    out.notes.push_back(fmt::format("{} of {} calls are of no known collective or size", unsized,
                                    out.collectives.size()));
}

}  // namespace

bool is_execution_trace(std::string_view text) {
  return identify(text).kind == LogKind::execution_trace;
}

sim::Result<ExecutionTrace> read_execution_trace(std::string_view text, std::string_view name) {
  ExecutionTrace out;
  out.source = name;
  RAILYARD_ASSIGN(const Json document, parse_json(text, out.source));
  RAILYARD_TRY(check_schema(document, out));
  const Json& list = json_at(document, "nodes");
  if (!list.is_array() || list.empty())
    return sim::bad_input("an execution trace without nodes", out.source);
  std::vector<std::pair<std::int64_t, const Json*>> nodes;
  for (const Json& node : list)
    if (const auto id = json_integer(node, "id")) nodes.emplace_back(*id, &node);
  out.nodes = nodes.size();
  collect(nodes, out);
  return out;
}

TracedReplay replay_step(const ExecutionTrace& trace, const ExecutionTrace::Step& step) {
  TracedReplay out;
  out.notes.emplace_back(
      "an execution trace holds no times: kernels and host take none, so only "
      "the communication can be asked about");
  std::size_t calls = 0;
  for (std::size_t i = step.first; i < step.last; ++i) {
    const KinetoCollective& call = trace.collectives[i];
    if (!call.collective || !call.bytes) continue;
    ReplayItem item;
    item.kind = ReplayKind::call;
    item.call = replay_call(call, trace.ranks, out);
    out.forward.push_back(std::move(item));
    ReplayItem wait;
    wait.kind = ReplayKind::wait;
    wait.waits_for = ++calls;
    out.forward.push_back(std::move(wait));
  }
  if (const std::size_t left = step.last - step.first - calls; left > 0)
    out.notes.push_back(fmt::format("{} calls of no known collective or size were left out", left));
  return out;
}

}  // namespace railyard::calibrate
