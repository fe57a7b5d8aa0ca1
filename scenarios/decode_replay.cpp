#include <fmt/format.h>

#include "scenarios/replay_spec.h"
#include "scenarios/scenario.h"

namespace railyard::scenarios {
namespace {

constexpr std::int64_t kMostIterations = 1'000'000;
constexpr std::size_t kMostItems = 1'000'000;

using models::ReplayAction;

void read_call(MapReader& reader, ReplayItemSpec& out) {
  out.action = ReplayAction::call;
  reader.required("call", out.name);
  sim::Duration time{};
  if (reader.optional("time", time)) {
    out.kernel = time;
  } else if (reader.required("size", out.size)) {
    const Place place = *reader.find("call");
    auto collective = sim::parse_enum<sim::Collective>(out.name);
    if (collective.ok())
      out.collective = collective.value();
    else
      reader.take(
          place.error(collective.error().message + "; a call of another kind has a 'time'"));
    reader.optional("dtype", out.dtype);
    reader.optional("root", out.root);
    if (out.size.raw() == 0) reader.take(reader.find("size")->error("a call carries something"));
  }
  out.group = kWorld;
  reader.optional("group", out.group);
  reader.optional("before", out.before);
}

void read_kernels(MapReader& reader, ReplayItemSpec& out) {
  out.name = "kernels";
  reader.optional("name", out.name);
  reader.optional("before", out.before);
  reader.optional("after", out.after);
  reader.optional("kernel", out.kernel);
  reader.optional("bound", out.bound);
  reader.optional("stream", out.stream);
  if (!out.kernel && !reader.has("before") && !reader.has("after"))
    reader.take(
        reader.place().error("one of kernel, before, after, call, wait and synchronize is "
                             "expected"));
}

// Counts calls, so that a wait can be checked; sums up all times, so that they fit a run.
struct Totals {
  std::uint32_t calls = 0;
  sim::Int128 time = 0;
  std::size_t items = 0;
};

Result<void> read_list(MapReader& reader, std::string_view key, std::vector<ReplayItemSpec>& out,
                       Totals& totals) {
  const auto place = reader.find(key);
  if (!place) return {};
  RAILYARD_TRY(decode(*place, out));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const ReplayItemSpec& item = out[i];
    if (item.action == ReplayAction::call) ++totals.calls;
    if (item.action == ReplayAction::wait && item.waits_for > totals.calls)
      return place->item(i).error(
          fmt::format("it waits for call {} of the step, but only {} came before", item.waits_for,
                      totals.calls));
    totals.time += sim::Int128(item.before.count()) + item.after.count() +
                   item.kernel.value_or(sim::Duration{}).count();
  }
  totals.items += out.size();
  return {};
}

}  // namespace

Result<void> decode(const Place& place, ReplayItemSpec& out) {
  RAILYARD_TRY(expect(place, Node::Kind::map));
  MapReader reader(place);
  if (reader.has("call")) {
    read_call(reader, out);
  } else if (reader.has("wait")) {
    out.action = ReplayAction::wait;
    reader.required("wait", out.waits_for, 1U, static_cast<std::uint32_t>(kMostItems));
  } else if (reader.has("synchronize")) {
    out.action = ReplayAction::synchronize;
    bool yes = true;
    if (reader.required("synchronize", yes) && !yes)
      reader.take(reader.find("synchronize")->error("'true' is what it can be"));
  } else {
    read_kernels(reader, out);
  }
  return reader.finish();
}

Result<void> decode(const Place& place, ReplaySpec& out) {
  MapReader reader(place);
  Totals totals;
  reader.optional("name", out.name);
  reader.optional("iterations", out.training.iterations, 1, kMostIterations);
  reader.take(read_list(reader, "forward", out.forward, totals));
  reader.take(read_list(reader, "backward", out.backward, totals));
  reader.take(read_list(reader, "after_backward", out.after_backward, totals));
  RAILYARD_TRY(reader.finish());
  if (totals.items == 0)
    return place.error("one of forward, backward and after_backward must have items");
  if (totals.items > kMostItems) return place.error(fmt::format("more than {} items", kMostItems));
  if (totals.time * out.training.iterations > sim::Int128(1) << 62)
    return place.error("all iterations together take longer than 53 days");
  return {};
}

}  // namespace railyard::scenarios
