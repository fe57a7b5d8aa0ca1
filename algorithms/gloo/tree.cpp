// Broadcast over a binomial tree.
#include <vector>

#include "algorithms/gloo/gloo_builder.h"

namespace railyard::algorithms::gloo {
namespace {

using sim::LaneId;
using sim::Op;
using sim::Primitive;
using sim::ProgramId;

// The rank at a distance from the root.
std::uint32_t rank_at(const GlooInput& input, std::uint32_t distance) {
  return (distance + input.call.root) % input.ranks;
}

// How far on the ranks are that `distance` sends to, in the order of the rounds.
std::vector<std::uint32_t> children_of(std::uint32_t distance, std::uint32_t ranks) {
  std::vector<std::uint32_t> children;
  for (std::uint64_t hop = 1; hop < ranks; hop *= 2)
    if (distance < hop && distance + hop < ranks)
      children.push_back(static_cast<std::uint32_t>(distance + hop));
  return children;
}

}  // namespace

sim::Schedule tree_broadcast(const GlooInput& input) {
  GlooBuilder builder(input);
  sim::Work buffer;
  buffer.size = buffer.chunk = input.call.size;
  const std::uint32_t work = builder.schedule().add_work(buffer);
  const auto program = [&](Primitive primitive) {
    return builder.schedule().add_program({Op{.primitive = primitive}});
  };
  const ProgramId at_root = program(input.call.in_place ? Primitive::send : Primitive::copy_send);
  const ProgramId inner = program(Primitive::recv_copy_send);
  const ProgramId leaf = program(Primitive::recv);
  std::vector<LaneId> lanes;
  for (std::uint32_t distance = 0; distance < input.ranks; ++distance) {
    const bool passes_on = !children_of(distance, input.ranks).empty();
    const ProgramId own = distance == 0 ? at_root : (passes_on ? inner : leaf);
    lanes.push_back(builder.lane({.rank = rank_at(input, distance), .program = own, .work = work}));
  }
  for (std::uint32_t distance = 0; distance < input.ranks; ++distance)
    for (const std::uint32_t child : children_of(distance, input.ranks))
      builder.connect({lanes[distance], rank_at(input, distance)},
                      {lanes[child], rank_at(input, child)});
  return std::move(builder).finish();
}

}  // namespace railyard::algorithms::gloo
