// nccl: and env:.
#include <fmt/format.h>

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/names.h"
#include "scenarios/sections.h"

namespace railyard::scenarios {
namespace {

constexpr std::uint32_t kMaxChannels = 64;  // NCCL's MAXCHANNELS

bool is_auto(const Node* node) {
  return node != nullptr && node->kind == Node::Kind::scalar &&
         sim::equal_ignoring_case(node->scalar, "auto");
}

Result<void> decode_choice(const Place& place, NcclChoice& out) {
  RAILYARD_TRY(expect(place, Node::Kind::map));
  for (const char* key : {"algorithm", "protocol", "channels"})
    if (const Node* node = place.node->find(key); is_auto(node))
      return Place{node, place.path + "." + key}.error(
          "NCCL chooses all or nothing: 'nccl: auto', with NCCL_ALGO and NCCL_PROTO in 'env:' to "
          "narrow the choice");
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

Result<void> decode_setup(const Place& place, NcclSetup& out) {
  MapReader reader(place);
  const std::optional<Place> choice = reader.find("choice");
  if (choice && !is_auto(choice->node)) return choice->error("'auto' is expected");
  reader.optional("version", out.version);
  reader.optional("p2p", out.p2p);
  reader.optional("gpudirect", out.gpudirect);
  reader.optional("infiniband", out.infiniband);
  reader.optional("multicast", out.multicast);
  reader.optional("collnet", out.collnet);
  reader.optional("gpu_initiated", out.gpu_initiated);
  out.choose = true;
  return reader.finish();
}

constexpr std::string_view kDataDirect = "NCCL_IB_DATA_DIRECT";

}  // namespace

bool uses_direct_nic(const NcclSetup& setup) {
  namespace nccl = algorithms::nccl;
  if (!setup.choose) return true;
  const auto version = nccl::parse_version(setup.version);
  const auto env = nccl::Environment::parse(setup.env);
  const bool knows_it = !version.ok() || version.value() >= nccl::Version{2, 27, 0};
  return knows_it && (!env.ok() || env.value().integer(kDataDirect, 1) != 0);
}

Result<void> decode_nccl(const Place& place, std::vector<NcclChoice>& choices, NcclSetup& setup) {
  if (is_auto(place.node)) {
    setup.choose = true;
    return {};
  }
  if (place.node->kind == Node::Kind::map) {
    if (place.node->find("choice") != nullptr) return decode_setup(place, setup);
    RAILYARD_TRY(decode_choice(place, choices.emplace_back()));
    if (place.node->find("up_to") != nullptr)
      return place.error("'up_to' belongs to a list of choices by size");
    return {};
  }
  if (place.node->kind != Node::Kind::list)
    return place.error(
        "'auto', {choice: auto, ...}, {algorithm: ..., protocol: ..., channels: ...} or a list of "
        "the latter is expected");
  for (std::size_t i = 0; i < place.node->items.size(); ++i)
    RAILYARD_TRY(decode_choice(place.item(i), choices.emplace_back()));
  return check_limits(place, choices);
}

Result<void> decode_env(const Place& place, NcclSetup& setup) {
  RAILYARD_TRY(expect(place, Node::Kind::map));
  if (!setup.choose)
    return place.error("NCCL's variables steer NCCL's choice: they need 'nccl: auto'");
  for (const Entry& entry : place.node->entries) {
    const Place value{&entry.value, place.path + "." + entry.key};
    if (!entry.key.starts_with("NCCL_")) return value.error("only NCCL_* variables are expected");
    if (entry.value.kind != Node::Kind::scalar && entry.value.kind != Node::Kind::null)
      return value.error("a text or number is expected");
    setup.env.emplace(entry.key, entry.value.scalar);
  }
  return {};
}

}  // namespace railyard::scenarios
