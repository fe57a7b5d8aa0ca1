// From a CustomSchedule to a sim::Schedule: a lane per block, an operation per step.
#include <algorithm>
#include <map>
#include <utility>

#include "algorithms/builder.h"
#include "algorithms/chunking.h"
#include "algorithms/custom/custom_schedule.h"
#include "sim/dataflow.h"

namespace railyard::algorithms {
namespace {

using sim::bad_input;
using sim::Buffer;
using sim::Bytes;
using sim::Collective;
using sim::LaneId;
using sim::Op;
using sim::Primitive;
using sim::Result;
using sim::Schedule;

constexpr std::uint32_t kMaxSlots = 32;

// Bytes of the buffer that is cut into chunks.
Bytes whole_buffer(const CustomSchedule& custom, Bytes size) {
  switch (custom.collective) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::gather:
    case Collective::scatter: return size * custom.ranks;
    default: return size;
  }
}

// In place, where an input chunk lies in the output: the buffers' common part, in chunks.
struct CommonBuffer {
  std::int64_t input = 0;  // of the rank's input, in the common buffer
  std::int64_t output = 0;
};
CommonBuffer common_buffer(const CustomSchedule& custom, std::uint32_t rank) {
  const std::int64_t own = std::int64_t{custom.chunks / custom.ranks} * rank;
  switch (custom.collective) {
    case Collective::all_gather:
    case Collective::gather: return {own, 0};
    case Collective::reduce_scatter:
    case Collective::scatter: return {0, own};
    default: return {};
  }
}

// Waits of one block for another, each for a later step than the one before.
struct Wait {
  std::size_t step = 0;   // that waits
  std::size_t after = 0;  // of the other block
};
using Waits = std::map<std::pair<std::size_t, std::size_t>, std::vector<Wait>>;  // (block, other)

// Leaves out what an earlier wait of the block covers.
void add_wait(const Wait& wait, std::vector<Wait>& list) {
  if (!list.empty() && list.back().after >= wait.after) return;
  if (!list.empty() && list.back().step == wait.step)
    list.back().after = wait.after;
  else
    list.push_back(wait);
}

Waits find_waits(const CustomSchedule& custom) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index;
  for (std::size_t b = 0; b < custom.blocks.size(); ++b)
    index[{custom.blocks[b].rank, custom.blocks[b].id}] = b;
  Waits waits;
  for (std::size_t b = 0; b < custom.blocks.size(); ++b) {
    const CustomBlock& block = custom.blocks[b];
    for (std::size_t s = 0; s < block.steps.size(); ++s)
      for (const CustomStepId& after : block.steps[s].after)
        add_wait({s, after.step}, waits[{b, index.at({block.rank, after.block})}]);
  }
  return waits;
}

class CustomBuilder {
 public:
  CustomBuilder(const CustomSchedule& custom, const sim::CollectiveCall& call,
                const P2pLayout* layout)
      : custom_(custom), layout_(layout), builder_(call, custom.ranks) {}

  Result<Schedule> build(Bytes chunk, Bytes portion) && {
    RAILYARD_TRY(make_programs());
    add_lanes(chunk, portion);
    connect();
    Schedule schedule = std::move(builder_).finish(kFifoSteps);
    schedule.scratch = chunk * custom_.scratch;
    return schedule;
  }

 private:
  Result<void> make_programs() {
    for (const CustomBlock& block : custom_.blocks) {
      sim::Program& program = programs_.emplace_back();
      for (const CustomStep& step : block.steps) {
        RAILYARD_ASSIGN(const Op op, make_op(block, step));
        program.push_back(op);
      }
    }
    return add_signals();
  }

  // The place of a chunk in a buffer that a schedule knows: in place, the input is the output.
  [[nodiscard]] Result<std::pair<Buffer, std::int64_t>> place(const CustomBlock& block,
                                                              const CustomStep& step,
                                                              const CustomPlace& at) const {
    if (at.buffer != Buffer::input || !custom_.in_place)
      return std::pair{at.buffer, std::int64_t{at.chunk}};
    const CommonBuffer common = common_buffer(custom_, block.rank);
    const std::int64_t chunk = at.chunk + common.input - common.output;
    const bool rooted_away = sim::is_rooted(custom_.collective) &&
                             custom_.collective != Collective::broadcast &&
                             block.rank != custom_.root;
    const std::int64_t chunks = custom_.collective == Collective::reduce_scatter ||
                                        custom_.collective == Collective::scatter
                                    ? custom_.chunks / custom_.ranks
                                    : custom_.chunks;
    const bool in_output = chunk >= 0 && chunk + step.count <= chunks && !rooted_away;
    if (in_output) return std::pair{Buffer::output, chunk};
    if (&at == &step.target)
      return bad_input("it writes a part of the input that is no output of its rank",
                       custom_.file + ":" + std::to_string(step.line));
    return std::pair{Buffer::input, std::int64_t{at.chunk}};
  }

  [[nodiscard]] Result<Op> make_op(const CustomBlock& block, const CustomStep& step) const {
    const bool has_source = sim::reads_source(step.primitive);
    const bool has_target = sim::writes_target(step.primitive);
    Op op;
    op.primitive = step.primitive;
    op.repeat = step.count;
    op.block_step = 1;
    op.recv_slots = op.send_slots = 1;
    std::int64_t source = 0;
    std::int64_t target = 0;
    if (has_source) {
      RAILYARD_ASSIGN(const auto at, place(block, step, step.source));
      op.source = at.first;
      source = at.second;
    }
    if (has_target) {
      RAILYARD_ASSIGN(const auto at, place(block, step, step.target));
      op.target = at.first;
      target = at.second;
    }
    op.block_base = static_cast<std::int32_t>(has_source ? source : target);
    if (has_source && has_target) op.target_shift = static_cast<std::int32_t>(target - source);
    return op;
  }

  // One signal connection for every pair of blocks that wait; its slots come after the peers'.
  Result<void> add_signals() {
    std::vector<std::uint32_t> next_recv, next_send;
    for (const CustomBlock& block : custom_.blocks) {
      next_recv.push_back(block.recv_from >= 0 ? 1 : 0);
      next_send.push_back(block.send_to >= 0 ? 1 : 0);
    }
    for (const auto& [blocks, list] : find_waits(custom_)) {
      const auto [waiting, other] = blocks;
      const std::uint32_t recv = next_recv[waiting]++;
      const std::uint32_t send = next_send[other]++;
      if (recv >= kMaxSlots || send >= kMaxSlots)
        return bad_input("a block has more than 31 others that it waits for, or that wait for it",
                         custom_.file + ":" + std::to_string(custom_.blocks[waiting].line));
      for (const Wait& wait : list) {
        programs_[waiting][wait.step].wait_slots |= 1U << recv;
        programs_[other][wait.after].signal_slots |= 1U << send;
      }
      signals_.push_back({other, waiting});
    }
    return {};
  }

  void add_lanes(Bytes chunk, Bytes portion) {
    sim::Work work;
    work.layout = sim::Layout::per_rank;
    work.blocks = std::max(custom_.chunks, custom_.scratch);
    work.size = work.stride = chunk;
    work.chunk = std::min(chunk, portion);
    const std::uint32_t id = builder_.add_work(work);
    for (std::size_t b = 0; b < custom_.blocks.size(); ++b) {
      sim::Lane lane;
      lane.rank = custom_.blocks[b].rank;
      lane.channel = static_cast<std::uint16_t>(custom_.blocks[b].id);
      lane.role = sim::LaneRole::custom;
      lane.work = id;
      lane.program = builder_.add_program(std::move(programs_[b]));
      lanes_.push_back(builder_.add_lane(lane));
    }
  }

  void connect() {
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // from, to, channel
    std::map<Key, std::size_t> receivers;
    for (std::size_t b = 0; b < custom_.blocks.size(); ++b) {
      const CustomBlock& block = custom_.blocks[b];
      if (block.recv_from >= 0)
        receivers[{static_cast<std::uint32_t>(block.recv_from), block.rank, block.channel}] = b;
    }
    for (std::size_t b = 0; b < custom_.blocks.size(); ++b) {
      const CustomBlock& block = custom_.blocks[b];
      if (block.send_to < 0) continue;
      const auto to = static_cast<std::uint32_t>(block.send_to);
      const NicPair hop =
          layout_ == nullptr ? NicPair{} : p2p_hop(*layout_, block.rank, to, block.channel);
      builder_.connect(lanes_[b], lanes_[receivers.at({block.rank, to, block.channel})], hop);
    }
    for (const auto& [from, to] : signals_) builder_.signal(lanes_[from], lanes_[to]);
  }

  const CustomSchedule& custom_;
  const P2pLayout* layout_;
  ScheduleBuilder builder_;
  std::vector<sim::Program> programs_;                        // by block
  std::vector<LaneId> lanes_;                                 // by block
  std::vector<std::pair<std::size_t, std::size_t>> signals_;  // blocks
};

// The first problem with the schedule as `collective`, of chunks of some portions; empty if none.
std::string problem_as(const CustomSchedule& custom, CustomProof& proof) {
  constexpr std::int64_t kPortion = 4;
  constexpr std::int64_t kPortions = 3;
  CustomSize size;
  size.element_size = 1;
  size.portion = sim::bytes(kPortion);
  const Bytes whole = sim::bytes(kPortion * kPortions) * custom.chunks;
  const bool all_ranks = whole_buffer(custom, sim::bytes(1)).raw() > 1;
  size.size = all_ranks ? whole / std::int64_t{custom.ranks} : whole;
  const auto schedule = build_custom(custom, size, nullptr);
  if (!schedule.ok()) return schedule.error().text();
  const auto report = sim::check_dataflow(schedule.value());
  if (!report.ok()) return report.error().message;
  if (const auto valid = sim::validate(schedule.value()); !valid.ok()) return valid.error().message;
  proof.slices = report.value().slices / kPortions;
  proof.messages = sim::totals(schedule.value()).messages / kPortions;
  return {};
}

}  // namespace

Result<Schedule> build_custom(const CustomSchedule& custom, const CustomSize& size,
                              const P2pLayout* layout) {
  sim::CollectiveCall call;
  call.collective = custom.collective;
  call.size = size.size;
  call.element_size = size.element_size;
  call.root = custom.root;
  call.algorithm = sim::Algorithm::custom;
  call.protocol = custom.protocol;
  call.in_place = custom.in_place;
  if (size.size.raw() == 0) return ScheduleBuilder(call, custom.ranks).finish(kFifoSteps);
  const Bytes whole = whole_buffer(custom, size.size);
  const std::int64_t unit = custom.chunks * size.element_size;
  if (size.size.raw() < 0 || whole.raw() % unit != 0)
    return bad_input(std::to_string(whole.raw()) + " bytes do not divide into " +
                         std::to_string(custom.chunks) + " chunks of whole elements of " +
                         std::to_string(size.element_size) + " bytes",
                     custom.file);
  const Bytes chunk = whole / std::int64_t{custom.chunks};
  Bytes portion = size.portion;
  if (portion.raw() == 0)
    portion = custom.protocol == sim::Protocol::plain ? chunk : step_payload(custom.protocol, {});
  return CustomBuilder(custom, call, layout).build(chunk, portion);
}

CustomProof prove_custom(const CustomSchedule& custom) {
  CustomProof proof;
  if (!custom.any_collective) {
    proof.problem = problem_as(custom, proof);
    if (proof.problem.empty()) proof.proved.push_back(custom.collective);
    return proof;
  }
  for (const auto& entry : sim::EnumTable<Collective>::entries) {
    CustomSchedule tried = custom;
    tried.any_collective = false;
    tried.collective = entry.value;
    if (!check_structure(tried).ok()) continue;
    const std::string problem = problem_as(tried, proof);
    if (problem.empty()) proof.proved.push_back(entry.value);
    if (proof.problem.empty())
      proof.problem = "it is no " + std::string(to_text(entry.value)) + ": " + problem;
  }
  if (!proof.proved.empty()) proof.problem.clear();
  if (proof.proved.empty() && proof.problem.empty())
    proof.problem = "its buffers are those of no collective";
  return proof;
}

}  // namespace railyard::algorithms
