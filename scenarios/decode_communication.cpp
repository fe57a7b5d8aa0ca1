// collectives:, traffic: and engine:.
#include <fmt/format.h>

#include "scenarios/sections.h"

namespace railyard::scenarios {
namespace {

constexpr std::uint32_t kMaxRank = 1'000'000;
constexpr std::size_t kMaxSizes = 10'000;

Result<void> decode_size_range(const Place& place, std::vector<sim::Bytes>& out) {
  MapReader reader(place);
  sim::Bytes from;
  sim::Bytes to;
  sim::Bytes step;
  std::int64_t factor = 0;
  reader.required("from", from);
  reader.required("to", to);
  const bool multiplied = reader.optional("factor", factor, 2, 1'000'000);
  const bool stepped = reader.optional("step", step);
  RAILYARD_TRY(reader.finish());
  if (from.raw() <= 0 || to < from) return place.error("0 < from <= to is expected");
  if (multiplied == stepped) return place.error("one of 'factor' and 'step' is expected");
  if (stepped && step.raw() <= 0) return place.error("'step' must be positive");
  // All three are at most 2^53 and a factor at most 10^6: a double bounds the product first.
  for (sim::Bytes size = from; size <= to;) {
    out.push_back(size);
    if (out.size() > kMaxSizes) return place.error(fmt::format("more than {} sizes", kMaxSizes));
    if (multiplied && size.raw() > to.raw() / factor) break;
    size = multiplied ? size * factor : size + step;
  }
  return {};
}

Result<void> decode_sizes(const Place& place, std::vector<sim::Bytes>& out) {
  if (place.node->kind == Node::Kind::map) return decode_size_range(place, out);
  if (place.node->kind != Node::Kind::list)
    return place.error("a list of sizes or {from: 8B, to: 1GiB, factor: 2} is expected");
  RAILYARD_TRY(decode(place, out));
  if (out.empty()) return place.error("the list is empty");
  if (out.size() > kMaxSizes) return place.error(fmt::format("more than {} sizes", kMaxSizes));
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].raw() == 0) return place.item(i).error("a size must be positive");
  return {};
}

Result<void> decode(const Place& place, Flow& out) {
  MapReader reader(place);
  reader.required("from", out.from, 0, kMaxRank);
  reader.required("to", out.to, 0, kMaxRank);
  reader.required("size", out.size);
  reader.optional("start", out.start);
  RAILYARD_TRY(reader.finish());
  if (out.from == out.to) return place.error("'from' and 'to' are the same rank");
  if (out.size.raw() == 0) return place.error("a size must be positive");
  return {};
}

Result<void> decode(const Place& place, TrafficPattern& out) {
  MapReader reader(place);
  constexpr double kMaxSpread = 0.99;  // sizes stay positive
  std::uint64_t seed = 0;
  reader.required("pattern", out.pattern);
  reader.required("size", out.size);
  reader.optional("spread", out.spread, 0.0, kMaxSpread);
  const bool counted = reader.optional("count", out.count, 1, 10'000'000);
  const bool aimed = reader.optional("to", out.to, 0, kMaxRank);
  reader.optional("start", out.start);
  if (reader.optional("seed", seed)) out.seed = seed;
  RAILYARD_TRY(reader.finish());
  if (out.size.raw() == 0) return place.error("a size must be positive");
  if (counted && out.pattern != Pattern::incast && out.pattern != Pattern::uniform)
    return place.error("'count' belongs to the patterns incast and uniform");
  if (aimed && out.pattern != Pattern::incast)
    return place.error("'to' belongs to the pattern incast");
  if (!counted && out.pattern == Pattern::uniform)
    return place.error("the pattern uniform needs 'count'");
  return {};
}

// A flow or a pattern: the key `pattern` tells.
Result<void> decode_traffic_item(const Place& place, Traffic& out) {
  RAILYARD_TRY(expect(place, Node::Kind::map));
  if (place.node->find("pattern") != nullptr) return decode(place, out.patterns.emplace_back());
  return decode(place, out.flows.emplace_back());
}

}  // namespace

Result<void> decode(const Place& place, CollectiveRun& out) {
  MapReader reader(place);
  reader.required("collective", out.collective);
  if (const auto sizes = reader.find_required("sizes"))
    reader.take(decode_sizes(*sizes, out.sizes));
  reader.optional("dtype", out.dtype);
  const bool rooted = reader.optional("root", out.root, 0, kMaxRank);
  reader.optional("group", out.group);
  RAILYARD_TRY(reader.finish());
  if (rooted && !sim::is_rooted(out.collective))
    return place.error("'root' belongs to Broadcast, Reduce, Gather and Scatter");
  return {};
}

Result<void> decode(const Place& place, Traffic& out) {
  if (place.node->kind == Node::Kind::map) return decode_traffic_item(place, out);
  if (place.node->kind != Node::Kind::list)
    return place.error("a list of flows, or one pattern, is expected");
  for (std::size_t i = 0; i < place.node->items.size(); ++i)
    RAILYARD_TRY(decode_traffic_item(place.item(i), out));
  return {};
}

Result<void> decode(const Place& place, EngineOptions& out) {
  MapReader reader(place);
  reader.optional("credits", out.credits);
  reader.optional("replay", out.replay);
  reader.optional("trace", out.trace);
  return reader.finish();
}

}  // namespace railyard::scenarios
