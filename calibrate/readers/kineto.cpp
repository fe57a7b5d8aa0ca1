#include "calibrate/readers/kineto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "calibrate/readers/kineto_events.h"
#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/log_text.h"

namespace railyard::calibrate {
namespace {

using sim::Collective;

struct Name {
  std::string_view text;  // how the name begins, in lower case without '_'
  Collective collective;
};
constexpr std::array kNames{Name{"allreduce", Collective::all_reduce},
                            Name{"allgather", Collective::all_gather},
                            Name{"reducescatter", Collective::reduce_scatter},
                            Name{"alltoall", Collective::all_to_all},
                            Name{"broadcast", Collective::broadcast},
                            Name{"reduce", Collective::reduce},
                            Name{"gather", Collective::gather},
                            Name{"scatter", Collective::scatter}};

struct Type {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array kTypes{Type{"Float8", 1}, Type{"Float", 4},    Type{"Double", 8},
                            Type{"Half", 2},   Type{"BFloat16", 2}, Type{"Int", 4},
                            Type{"Long", 8},   Type{"Short", 2},    Type{"Byte", 1},
                            Type{"Char", 1},   Type{"Bool", 1}};

// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)" -> "AllReduce_Sum_f32_RING_LL"
std::string_view after_kernel(std::string_view kernel) {
  const std::size_t bar = kernel.find('_');
  return bar == kernel.npos ? std::string_view{} : kernel.substr(bar + 1);
}

// What the arguments of a kernel or of record_param_comms say.
void describe(const TraceEvent& event, KinetoCollective& out) {
  out.name = event.text("args.Collective name");
  out.group = event.text("args.Process Group Name");
  out.group_ranks = event.text("args.Process Group Ranks");
  out.group_size = event.integer("args.Group size").value_or(-1);
  out.elements_in = event.integer("args.In msg nelems").value_or(-1);
  out.elements_out = event.integer("args.Out msg nelems").value_or(-1);
  out.dtype = event.text("args.dtype");
  out.sequence = event.integer("args.Seq");
  const auto split = [&](std::string_view key) {
    const std::string_view sizes = event.text(key);
    return !sizes.empty() && sizes != "[]";
  };
  out.uneven = split("args.In split size") || split("args.Out split size");
}

}  // namespace

std::optional<Collective> collective_of(std::string_view text) {
  std::string name;
  for (const char c : text)
    if (c != '_' && c != ':') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const Name& each : kNames)
    if (name.starts_with(each.text)) return each.collective;
  return std::nullopt;
}

std::int64_t bytes_of_type(std::string_view type) {
  for (const Type& each : kTypes)
    if (type == each.name || (each.name == "Float8" && type.starts_with("Float8")))
      return each.bytes;
  return 0;
}

bool is_nccl_kernel(std::string_view name) {
  return name.starts_with("ncclKernel") || name.starts_with("ncclDevKernel");
}

std::optional<std::int64_t> whole_bytes(const KinetoCollective& call) {
  const std::int64_t size = bytes_of_type(call.dtype);
  const bool grows =
      call.collective == Collective::all_gather || call.collective == Collective::gather;
  const std::int64_t elements = grows ? call.elements_out : call.elements_in;
  if (!call.collective || size == 0 || elements <= 0 || elements > INT64_MAX / size)
    return std::nullopt;
  return elements * size;
}

namespace {

class Reader {
 public:
  Reader(std::string_view name, const TraceSink& also) : also_(also) { trace_.source = name; }

  sim::Result<KinetoTrace> read(std::string_view text) {
    const TraceSink sink{
        [this](const TraceEvent& event) { this->event(event); },
        [this](std::string_view path, std::string_view value) { this->value(path, value); }};
    RAILYARD_ASSIGN(const bool found, read_trace_events(text, trace_.source, sink));
    if (!found) return other_log(text, trace_.source, LogKind::kineto);
    finish();
    trace_.notes = notes_.take();
    return std::move(trace_);
  }

 private:
  void value(std::string_view path, std::string_view value) {
    if (also_.value) also_.value(path, value);
    if (path == "distributedInfo.rank") trace_.rank = to_integer(value).value_or(-1);
    if (path == "distributedInfo.world_size") trace_.world_size = to_integer(value).value_or(-1);
    if (path == "distributedInfo.backend") trace_.backend = value;
    if (path == "distributedInfo.nccl_version") trace_.nccl = value;
    if (path.starts_with("deviceProperties.") && path.ends_with(".name"))
      trace_.devices.emplace_back(value);
  }

  void event(const TraceEvent& event) {
    ++trace_.events;
    if (also_.event) also_.event(event);
    if (event.text("ph") != "X") return;
    const std::string_view category = event.text("cat"), name = event.text("name");
    const bool kernel = category == "kernel" || category == "Kernel";
    const bool copy = category == "gpu_memcpy" || category == "gpu_memset";
    const bool step = name.starts_with("ProfilerStep#") && category == "user_annotation";
    if (name == "record_param_comms" && !event.text("args.Collective name").empty()) {
      if (const auto id = event.integer("args.External id")) describe(event, operators_[*id]);
      return;
    }
    if (!kernel && !copy && !step) return;
    const auto times = event.times();
    if (!times) {
      ++without_time_;
      return;
    }
    const auto [start, end] = *times;
    if (step) {
      trace_.steps.push_back({std::string(name), start, end});
      return;
    }
    const bool nccl = kernel && is_nccl_kernel(name);
    KinetoTime& time = copy ? trace_.copies : nccl ? trace_.communication : trace_.compute;
    ++time.count;
    time.ns += end - start;
    if (nccl) collective(event, start, end - start);
  }

  void collective(const TraceEvent& event, std::int64_t start, std::int64_t duration) {
    KinetoCollective call;
    describe(event, call);
    const std::string_view name = event.text("name");
    call.kernel = name.substr(0, name.find('('));
    call.device = event.integer("args.device").value_or(-1);
    call.stream = event.integer("args.stream").value_or(-1);
    call.start_ns = start;
    call.end_ns = start + duration;
    ids_.push_back(event.integer("args.External id").value_or(-1));
    trace_.collectives.push_back(std::move(call));
  }

  void finish() {
    std::size_t unsized = 0;
    for (std::size_t i = 0; i < trace_.collectives.size(); ++i) {
      KinetoCollective& call = trace_.collectives[i];
      if (const auto found = operators_.find(ids_[i]);
          call.name.empty() && found != operators_.end())
        take_description(found->second, call);
      call.collective =
          call.name.empty() ? collective_of(after_kernel(call.kernel)) : collective_of(call.name);
      call.bytes = whole_bytes(call);
      if (call.collective && !call.bytes) ++unsized;
    }
    std::stable_sort(trace_.collectives.begin(), trace_.collectives.end(),
                     [](const KinetoCollective& a, const KinetoCollective& b) {
                       return a.start_ns < b.start_ns;
                     });
    std::sort(trace_.steps.begin(), trace_.steps.end(),
              [](const KinetoStep& a, const KinetoStep& b) { return a.start_ns < b.start_ns; });
    if (trace_.collectives.empty()) notes_.add(0, "no NCCL kernel in this trace");
    if (unsized != 0)
      notes_.add(0, fmt::format("{} of {} collectives without a size (recorded by torch before "
                                "2.2?): not used",
                                unsized, trace_.collectives.size()));
    if (without_time_ != 0)
      notes_.add(0, fmt::format("{} events without a time: left out", without_time_));
    if (trace_.rank < 0) notes_.add(0, "the trace does not say which rank it is of");
  }

  static void take_description(const KinetoCollective& from, KinetoCollective& to) {
    to.name = from.name;
    to.group = from.group;
    to.group_ranks = from.group_ranks;
    to.group_size = from.group_size;
    to.elements_in = from.elements_in;
    to.elements_out = from.elements_out;
    to.dtype = from.dtype;
    to.sequence = from.sequence;
    to.uneven = from.uneven;
  }

  const TraceSink& also_;
  KinetoTrace trace_;
  Notes notes_;
  std::vector<std::int64_t> ids_;  // External id of each collective
  std::unordered_map<std::int64_t, KinetoCollective> operators_;
  std::size_t without_time_ = 0;
};

}  // namespace

sim::Result<KinetoTrace> read_kineto_with(std::string_view text, std::string_view name,
                                          const TraceSink& also) {
  const LogKind kind = identify(text).kind;
  if (kind != LogKind::kineto) return other_log(text, std::string(name), LogKind::kineto);
  return Reader(name, also).read(text);
}

sim::Result<KinetoTrace> read_kineto(std::string_view text, std::string_view name) {
  return read_kineto_with(text, name, {});
}

}  // namespace railyard::calibrate
