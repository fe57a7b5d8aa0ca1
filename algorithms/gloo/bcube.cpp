// AllReduce in a hypercube of groups, as gloo::allreduce with the algorithm BCUBE.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/gloo/gloo_builder.h"

namespace railyard::algorithms::gloo {
namespace {

using sim::Buffer;
using sim::bytes;
using sim::LaneId;
using sim::LaneRole;
using sim::Op;
using sim::Primitive;
using sim::ProgramId;

// Members of a group in each step.
std::vector<std::uint32_t> group_sizes(std::uint32_t ranks) {
  std::vector<std::uint32_t> sizes;
  for (; ranks % 2 == 0; ranks /= 2) sizes.push_back(2);
  if (ranks > 1) sizes.push_back(ranks);
  return sizes;
}

struct Region {
  std::int64_t offset = 0;  // in elements
  std::int64_t length = 0;
  friend auto operator<=>(const Region&, const Region&) = default;
};

// Part `index` of `parts`: equal, rounded up, the last ones shorter or empty.
Region part_of(const Region& region, std::uint32_t parts, std::uint32_t index) {
  const std::int64_t length = div_up(region.length, parts);
  const std::int64_t left = region.length - index * length;
  return {region.offset + index * length, std::clamp<std::int64_t>(left, 0, length)};
}

// A rank's place in one step.
struct Step {
  Region region;               // what its group sums
  std::uint32_t size = 2;      // members
  std::uint32_t distance = 1;  // between them
  std::uint32_t member = 0;    // of the rank
};

std::vector<Step> steps_of(std::uint32_t rank, std::uint32_t ranks, std::int64_t elements) {
  std::vector<Step> steps;
  Step step{.region = {0, elements}};
  for (const std::uint32_t size : group_sizes(ranks)) {
    step.size = size;
    step.member = rank / step.distance % size;
    steps.push_back(step);
    step.region = part_of(step.region, size, step.member);
    step.distance *= size;
  }
  return steps;
}

// Two phases of as many steps: parts go to who sums them, then sums to everyone.
class BcubeBuilder {
 public:
  explicit BcubeBuilder(const GlooInput& input) : input_(input), builder_(input) {
    const auto add = [&](Primitive primitive, Buffer source) {
      return builder_.schedule().add_program({Op{.primitive = primitive, .source = source}});
    };
    send_input_ = add(Primitive::send, Buffer::input);
    send_sums_ = add(Primitive::send, Buffer::output);
    add_input_ = add(Primitive::recv_reduce_copy, Buffer::input);
    add_sums_ = add(Primitive::recv_reduce_copy, Buffer::output);
    receive_ = add(Primitive::recv, Buffer::input);
    for (std::uint32_t rank = 0; rank < input.ranks; ++rank)
      steps_.push_back(
          steps_of(rank, input.ranks, input.call.size.raw() / input.call.element_size));
  }

  sim::Schedule build() && {
    const auto count = static_cast<std::uint32_t>(steps_.front().size());
    for (std::uint32_t s = 0; s < count; ++s) reduce_step(s);
    for (std::uint32_t s = 0; s < count; ++s) gather_step(count - 1 - s, count + s);
    return std::move(builder_).finish();
  }

 private:
  [[nodiscard]] std::uint32_t peer(std::uint32_t rank, std::uint32_t step,
                                   std::uint32_t member) const {
    const Step& own = steps_[rank][step];
    return rank + member * own.distance - own.member * own.distance;
  }

  std::uint32_t work_of(const Region& region) {
    const auto next = static_cast<std::uint32_t>(works_.size());
    const auto [found, is_new] = works_.emplace(region, next);
    if (is_new) {
      sim::Work work;
      work.offset = bytes(region.offset * input_.call.element_size);
      work.size = bytes(region.length * input_.call.element_size);
      work.chunk = bytes(std::max<std::int64_t>(work.size.raw(), 1));
      builder_.schedule().add_work(work);
    }
    return found->second;
  }

  LaneId lane(std::uint32_t rank, LaneRole role, std::uint32_t phase, ProgramId program,
              const Region& region) {
    return builder_.lane({.rank = rank,
                          .role = role,
                          .phase = static_cast<std::uint16_t>(phase),
                          .program = program,
                          .work = work_of(region)});
  }

  // Every rank sends each other member its part, and adds up its own of all of them.
  void reduce_step(std::uint32_t s) {
    std::vector<LaneId> sums;
    for (std::uint32_t rank = 0; rank < input_.ranks; ++rank) {
      const Step& own = steps_[rank][s];
      sums.push_back(lane(rank, LaneRole::gloo_reduce, s, s == 0 ? add_input_ : add_sums_,
                          part_of(own.region, own.size, own.member)));
    }
    for (std::uint32_t rank = 0; rank < input_.ranks; ++rank) {
      const Step& own = steps_[rank][s];
      for (std::uint32_t member = 0; member < own.size; ++member) {
        if (member == own.member) continue;
        const std::uint32_t to = peer(rank, s, member);
        const LaneId sending = lane(rank, LaneRole::gloo_move, s, s == 0 ? send_input_ : send_sums_,
                                    part_of(own.region, own.size, member));
        builder_.connect({sending, rank}, {sums[to], to});
      }
    }
  }

  // Every rank sends its sums to the other members.
  void gather_step(std::uint32_t s, std::uint32_t phase) {
    std::vector<LaneId> sending;
    for (std::uint32_t rank = 0; rank < input_.ranks; ++rank) {
      const Step& own = steps_[rank][s];
      sending.push_back(lane(rank, LaneRole::gloo_move, phase, send_sums_,
                             part_of(own.region, own.size, own.member)));
    }
    for (std::uint32_t rank = 0; rank < input_.ranks; ++rank) {
      const Step& own = steps_[rank][s];
      for (std::uint32_t member = 0; member < own.size; ++member) {
        if (member == own.member) continue;
        const std::uint32_t from = peer(rank, s, member);
        const LaneId receiving =
            lane(rank, LaneRole::gloo_move, phase, receive_, part_of(own.region, own.size, member));
        builder_.connect({sending[from], from}, {receiving, rank});
      }
    }
  }

  const GlooInput& input_;
  GlooBuilder builder_;
  ProgramId send_input_, send_sums_, add_input_, add_sums_, receive_;
  std::vector<std::vector<Step>> steps_;  // by rank
  std::map<Region, std::uint32_t> works_;
};

}  // namespace

sim::Schedule bcube_all_reduce(const GlooInput& input) { return BcubeBuilder(input).build(); }

}  // namespace railyard::algorithms::gloo
