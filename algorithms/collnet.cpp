#include "algorithms/collnet.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/chunking.h"
#include "algorithms/heads.h"

namespace railyard::algorithms {
namespace {

using sim::Buffer;
using sim::HeadNode;
using sim::Lane;
using sim::LaneId;
using sim::LaneRole;
using sim::Op;
using sim::Primitive;

// Shares of a CTA of 640 threads, in percent.
struct Shares {
  std::uint8_t scatter, up, down, gather;
};
constexpr Shares kHeadAmongOthers{20, 45, 20, 15};
constexpr Shares kHeadAlone{0, 65, 35, 0};
constexpr Shares kNoHead{50, 0, 0, 30};
constexpr std::uint8_t kChainShare = 50;

class CollnetBuilder {
 public:
  CollnetBuilder(const BuildInput& input, const P2pLayout& layout)
      : input_(input), layout_(layout), builder_(input.call, input.shape.ranks) {}

  sim::Schedule build(bool direct) && {
    for (const Part& part : input_.parts) {
      begin_channel(part, direct);
      if (direct)
        add_direct();
      else
        add_chain();
    }
    return std::move(builder_).finish(kFifoSteps);
  }

 private:
  void begin_channel(const Part& part, bool direct) {
    channel_ = part.channel;
    heads_ = &input_.channels[part.channel].heads;
    sim::Work work;
    work.offset = part.offset;
    work.size = part.size;
    if (direct) {
      work.layout = sim::Layout::rotating;
      work.blocks = input_.shape.heads;
    }
    set_chunking(input_.call, input_.shape, work);
    work_ = builder_.add_work(work);
  }

  // A lane with a program of its own.
  LaneId add(std::uint32_t rank, LaneRole role, sim::Program program, std::uint8_t percent) {
    Lane lane;
    lane.rank = rank;
    lane.channel = static_cast<std::uint16_t>(channel_);
    lane.role = role;
    lane.copy_percent = percent;
    lane.program = builder_.add_program(std::move(program));
    lane.work = work_;
    return builder_.add_lane(lane);
  }

  static Op op_on(Primitive primitive, std::uint32_t block) {
    Op op;
    op.primitive = primitive;
    op.block_base = static_cast<std::int32_t>(block);
    return op;
  }

  // What the k-th heads do together: `ups` to the switch and on to `downs`, by node.
  void meet(std::uint32_t k, const std::vector<LaneId>& ups, const std::vector<LaneId>& downs) {
    Op sum = op_on(Primitive::recv_reduce_send, block_of_head(k));
    sum.source = Buffer::none;
    Lane lane;
    lane.rank = heads_->nodes.front().heads[k];
    lane.channel = static_cast<std::uint16_t>(channel_);
    lane.role = LaneRole::collnet_switch;
    lane.program = builder_.add_program({sum});
    lane.work = work_;
    lane.in_switch = heads_->switches[k];
    const LaneId in_switch = builder_.add_lane(lane);
    for (std::size_t n = 0; n < heads_->nodes.size(); ++n) {
      const sim::DeviceId nic = head_nic(layout_.places, heads_->nodes[n].heads[k]);
      builder_.connect(ups[n], in_switch, {.out = nic, .in = {}});
      builder_.connect(in_switch, downs[n], {.out = {}, .in = nic});
    }
  }
  [[nodiscard]] std::uint32_t block_of_head(std::uint32_t k) const {
    return input_.call.algorithm == sim::Algorithm::collnet_direct ? k : 0;
  }

  void add_direct() {
    const auto count = static_cast<std::uint32_t>(heads_->nodes.front().heads.size());
    std::vector<std::vector<LaneId>> ups(count), downs(count);  // by head and node
    for (const HeadNode& node : heads_->nodes) {
      for (std::uint32_t k = 0; k < count; ++k) add_head(node, k, ups[k], downs[k]);
      for (const std::uint32_t rank : node.ranks) add_copies(node, rank, ups, downs);
    }
    for (std::uint32_t k = 0; k < count; ++k) meet(k, ups[k], downs[k]);
  }

  void add_head(const HeadNode& node, std::uint32_t k, std::vector<LaneId>& ups,
                std::vector<LaneId>& downs) {
    const bool alone = node.ranks.size() == 1;
    const Shares& shares = alone ? kHeadAlone : kHeadAmongOthers;
    ups.push_back(add(node.heads[k], LaneRole::collnet_up,
                      {op_on(alone ? Primitive::send : Primitive::recv_reduce_send, k)},
                      shares.up));
    downs.push_back(add(node.heads[k], LaneRole::collnet_down,
                        {op_on(alone ? Primitive::recv : Primitive::recv_copy_send, k)},
                        shares.down));
  }

  // Scatter and gather of one rank: every head but itself, from the one after it on.
  void add_copies(const HeadNode& node, std::uint32_t rank,
                  const std::vector<std::vector<LaneId>>& ups,
                  const std::vector<std::vector<LaneId>>& downs) {
    const auto count = static_cast<std::uint32_t>(node.heads.size());
    const auto self = std::ranges::find(node.heads, rank);
    const bool is_head = self != node.heads.end();
    const auto place =
        static_cast<std::uint32_t>(std::ranges::find(node.ranks, rank) - node.ranks.begin());
    std::vector<std::uint32_t> others;
    for (std::uint32_t i = 0; i < count; ++i)
      if (const std::uint32_t k = (place + 1 + i) % count; node.heads[k] != rank)
        others.push_back(k);
    if (others.empty()) return;
    sim::Program scatter, gather;
    for (std::uint32_t slot = 0; slot < others.size(); ++slot) {
      scatter.push_back(op_on(Primitive::send, others[slot]));
      scatter.back().send_slots = 1U << slot;
      gather.push_back(op_on(Primitive::recv, others[slot]));
      gather.back().recv_slots = 1U << slot;
    }
    const Shares& shares = is_head ? kHeadAmongOthers : kNoHead;
    const LaneId out = add(rank, LaneRole::collnet_scatter, std::move(scatter), shares.scatter);
    const LaneId in = add(rank, LaneRole::collnet_gather, std::move(gather), shares.gather);
    for (const std::uint32_t k : others) {
      builder_.connect(out, ups[k].back(), {});
      builder_.connect(downs[k].back(), in, {});
    }
  }

  void add_chain() {
    const auto count = static_cast<std::uint32_t>(heads_->nodes.front().heads.size());
    const std::uint32_t k = channel_ % count;
    std::vector<LaneId> ups, downs;  // of the heads, by node
    for (const HeadNode& node : heads_->nodes) {
      std::vector<std::uint32_t> chain = node.ranks;  // the head first
      std::rotate(chain.begin(), std::ranges::find(chain, node.heads[k]), chain.end());
      LaneId up, down;  // of the rank before, nearer to the head
      for (std::size_t i = 0; i < chain.size(); ++i) {
        const bool last = i + 1 == chain.size();
        const LaneId next_up =
            add(chain[i], LaneRole::collnet_up,
                {op_on(last ? Primitive::send : Primitive::recv_reduce_send, 0)}, kChainShare);
        const LaneId next_down =
            add(chain[i], LaneRole::collnet_down,
                {op_on(last ? Primitive::recv : Primitive::recv_copy_send, 0)}, kChainShare);
        if (i == 0) ups.push_back(next_up);
        if (i == 0) downs.push_back(next_down);
        if (i > 0) builder_.connect(next_up, up, {});
        if (i > 0) builder_.connect(down, next_down, {});
        up = next_up;
        down = next_down;
      }
    }
    meet(k, ups, downs);
  }

  const BuildInput& input_;
  const P2pLayout& layout_;
  ScheduleBuilder builder_;
  const sim::Heads* heads_ = nullptr;
  std::uint32_t channel_ = 0;
  std::uint32_t work_ = 0;
};

}  // namespace

sim::Schedule collnet_direct_schedule(const BuildInput& input, const P2pLayout& layout) {
  return CollnetBuilder(input, layout).build(true);
}

sim::Schedule collnet_chain_schedule(const BuildInput& input, const P2pLayout& layout) {
  return CollnetBuilder(input, layout).build(false);
}

}  // namespace railyard::algorithms
