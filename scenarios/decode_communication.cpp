// nccl:, collectives:, traffic: and engine:.
#include <fmt/format.h>

#include "scenarios/sections.h"

namespace railyard::scenarios {
namespace {

constexpr std::uint32_t kMaxChannels = 64;  // NCCL's MAXCHANNELS
constexpr std::uint32_t kMaxRank = 1'000'000;
constexpr std::size_t kMaxSizes = 10'000;

bool is_auto(const Node* node) {
  return node != nullptr && node->kind == Node::Kind::scalar &&
         sim::equal_ignoring_case(node->scalar, "auto");
}

Error no_chooser(const Place& place) {
  Error error = place.error(fmt::format(
      "'auto' needs NCCL's chooser, which this version does not have; name an algorithm ({}), a "
      "protocol ({}) and a number of channels",
      sim::enum_names<sim::Algorithm>(), sim::enum_names<sim::Protocol>()));
  error.code = sim::ErrorCode::unsupported;
  return error;
}

Result<void> decode_choice(const Place& place, NcclChoice& out) {
  for (const char* key : {"algorithm", "protocol", "channels"})
    if (const Node* node = place.node->find(key); is_auto(node))
      return no_chooser({node, place.path + "." + key});
  MapReader reader(place);
  reader.optional("up_to", out.up_to);
  reader.required("algorithm", out.algorithm);
  reader.required("protocol", out.protocol);
  reader.required("channels", out.channels, 1, kMaxChannels);
  return reader.finish();
}

Result<void> check_limits(const Place& place, const std::vector<NcclChoice>& choices) {
  if (choices.empty()) return place.error("the list is empty");
  const sim::Bytes unlimited = NcclChoice{}.up_to;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool last = i + 1 == choices.size();
    const bool limited = choices[i].up_to != unlimited;
    if (last && limited)
      return place.item(i).error("the last entry serves all larger sizes: it has no 'up_to'");
    if (!last && !limited) return place.item(i).error("every entry but the last needs 'up_to'");
    if (i > 0 && choices[i].up_to <= choices[i - 1].up_to)
      return place.item(i).error("'up_to' must grow from entry to entry");
  }
  return {};
}

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

Result<void> decode_nccl(const Place& place, std::vector<NcclChoice>& out) {
  if (is_auto(place.node)) return no_chooser(place);
  if (place.node->kind == Node::Kind::map) {
    RAILYARD_TRY(decode_choice(place, out.emplace_back()));
    if (place.node->find("up_to") != nullptr)
      return place.error("'up_to' belongs to a list of choices by size");
    return {};
  }
  if (place.node->kind != Node::Kind::list)
    return place.error("{algorithm: ..., protocol: ..., channels: ...} or a list is expected");
  for (std::size_t i = 0; i < place.node->items.size(); ++i)
    RAILYARD_TRY(decode_choice(place.item(i), out.emplace_back()));
  return check_limits(place, out);
}

Result<void> decode(const Place& place, CollectiveRun& out) {
  MapReader reader(place);
  reader.required("collective", out.collective);
  if (const auto sizes = reader.find_required("sizes"))
    reader.take(decode_sizes(*sizes, out.sizes));
  reader.optional("dtype", out.dtype);
  const bool rooted = reader.optional("root", out.root, 0, kMaxRank);
  reader.optional("group", out.group);
  RAILYARD_TRY(reader.finish());
  if (rooted && out.collective != sim::Collective::broadcast &&
      out.collective != sim::Collective::reduce)
    return place.error("'root' belongs to Broadcast and Reduce");
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
