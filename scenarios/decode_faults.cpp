// faults: - the keys are listed in faults.h.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/faults.h"

namespace railyard::scenarios {
namespace {

constexpr std::uint32_t kMostRanks = 10'000'000;

Result<void> decode(const Place& place, RankSet& out) {
  if (place.node->kind == Node::Kind::scalar && place.node->scalar == "all") {
    out.all = true;
    return {};
  }
  if (place.node->kind != Node::Kind::list)
    return place.error("a list of ranks or 'all' is expected");
  return decode(place, out.ranks);
}

Result<void> decode(const Place& place, SlowGpu::Step& out) {
  MapReader reader(place);
  reader.required("at", out.at);
  reader.required("factor", out.factor, 0.01, 1000.0);
  return reader.finish();
}

Result<void> decode(const Place& place, SlowGpu& out) {
  MapReader reader(place);
  if (const auto ranks = reader.find_required("ranks")) reader.take(decode(*ranks, out.ranks));
  double factor = 1;
  const bool constant = reader.optional("factor", factor, 0.01, 1000.0);
  if (const auto steps = reader.find("steps")) {
    reader.take(expect(*steps, Node::Kind::list));
    for (std::size_t i = 0; i < steps->node->items.size(); ++i)
      if (!reader.take(decode(steps->item(i), out.steps.emplace_back()))) break;
  }
  RAILYARD_TRY(reader.finish());
  if (constant != out.steps.empty()) return place.error("one of 'factor' and 'steps' is expected");
  if (constant) out.steps.push_back({{}, factor});
  std::ranges::stable_sort(out.steps, {}, &SlowGpu::Step::at);
  return {};
}

Result<void> decode(const Place& place, Jitter& out) {
  MapReader reader(place);
  if (const auto ranks = reader.find_required("ranks")) reader.take(decode(*ranks, out.ranks));
  reader.required("distribution", out.distribution);
  const bool spread =
      out.distribution == Distribution::lognormal || out.distribution == Distribution::normal;
  reader.required(out.distribution == Distribution::lognormal ? "median" : "mean", out.scale);
  if (spread) reader.required("sigma", out.sigma, 0.0, 10.0);
  return reader.finish();
}

Result<void> decode(const Place& place, LinkFault& out) {
  MapReader reader(place);
  reader.required("link", out.pattern);
  reader.required("at", out.at);
  sim::Duration time{};
  if (reader.optional("for", time)) out.lasts = time;
  if (reader.optional("every", time)) out.every = time;
  reader.required("speed", out.speed, 0.0, 1.0);
  RAILYARD_TRY(reader.finish());
  out.mark = place.node->mark;
  if (!out.every) return {};
  if (!out.lasts || *out.lasts >= *out.every || out.lasts->count() <= 0)
    return place.error("a link that flaps needs 'for', shorter than 'every'");
  return {};
}

Result<void> decode(const Place& place, GpuName& out) {
  RAILYARD_TRY(expect(place, Node::Kind::scalar));
  const std::string& text = place.node->scalar;
  if (text.find('/') == std::string::npos) return decode(place, out.rank, 0U, kMostRanks);
  out.device = text;
  return {};
}

Result<void> decode(const Place& place, Neighbour& out) {
  MapReader reader(place);
  if (const auto from = reader.find_required("from")) reader.take(decode(*from, out.from));
  if (const auto to = reader.find_required("to")) reader.take(decode(*to, out.to));
  reader.required("size", out.size);
  reader.optional("start", out.start);
  reader.optional("pause", out.pause);
  RAILYARD_TRY(reader.finish());
  if (out.from == out.to) return place.error("'from' and 'to' are the same GPU");
  if (out.size.raw() <= 0) return place.error("'size' must be positive");
  return {};
}

// NCCL_IB_RETRY_CNT rounds, of NCCL's own timer where none is given.
sim::Duration default_give_up(sim::Duration retry_timeout) {
  constexpr std::int64_t kRounds = 7;
  if (retry_timeout.count() > 0) return retry_timeout * kRounds;
  return sim::microseconds(30'000'000);
}

// A link that comes back before anybody tries again never comes back for the traffic.
Result<void> check_retries(const Place& place, const FaultSpec& spec) {
  for (const LinkFault& fault : spec.links)
    if (fault.every && outage(fault, spec.retry_timeout) >= *fault.every)
      return place.error(fmt::format(
          "link '{}' goes down again within a retry_timeout of {}: nothing would ever pass",
          fault.pattern, sim::to_text(spec.retry_timeout)));
  return {};
}

template <typename T>
void read_list(MapReader& reader, std::string_view key, std::vector<T>& out) {
  const auto list = reader.find(key);
  if (!list || !reader.take(expect(*list, Node::Kind::list))) return;
  for (std::size_t i = 0; i < list->node->items.size(); ++i)
    if (!reader.take(decode(list->item(i), out.emplace_back()))) return;
}

}  // namespace

Result<std::shared_ptr<const FaultSpec>> decode_faults(const Place& place) {
  MapReader reader(place);
  auto out = std::make_shared<FaultSpec>();
  std::uint64_t seed = 0;
  if (reader.optional("seed", seed)) out->seed = seed;
  read_list(reader, "slow_gpus", out->slow_gpus);
  read_list(reader, "jitter", out->jitter);
  read_list(reader, "links", out->links);
  reader.optional("retry_timeout", out->retry_timeout);
  out->give_up = default_give_up(out->retry_timeout);
  reader.optional("give_up", out->give_up);
  read_list(reader, "neighbours", out->neighbours);
  RAILYARD_TRY(reader.finish());
  RAILYARD_TRY(check_retries(place, *out));
  return std::shared_ptr<const FaultSpec>(std::move(out));
}

}  // namespace railyard::scenarios
