#include "algorithms/custom/custom_schedule.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "algorithms/custom/read_msccl.h"
#include "algorithms/custom/read_text.h"
#include "sim/promise.h"

namespace railyard::algorithms {
namespace {

using sim::bad_input;
using sim::Buffer;
using sim::Collective;
using sim::Primitive;
using sim::Result;

constexpr std::uint32_t kMaxCustomRanks = 4'096;
constexpr std::uint32_t kMaxCustomChunks = 65'536;
constexpr std::uint64_t kMaxCustomOperations = 1'000'000;

std::string where(const CustomSchedule& custom, std::uint32_t line) {
  return custom.file + ":" + std::to_string(line);
}

std::string name_of(const CustomBlock& block) {
  return "block " + std::to_string(block.rank) + "." + std::to_string(block.id);
}

bool cuts_all_ranks(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter ||
         collective == Collective::gather || collective == Collective::scatter;
}

// Chunks of a rank's input or output.
std::uint32_t chunks_in(const CustomSchedule& custom, Buffer buffer) {
  if (buffer == Buffer::scratch) return custom.scratch;
  const bool whole =
      !cuts_all_ranks(custom.collective) || custom.any_collective ||
      (buffer == Buffer::input) == (custom.collective == Collective::reduce_scatter ||
                                    custom.collective == Collective::scatter);
  return whole ? custom.chunks : custom.chunks / custom.ranks;
}

Result<void> check_place(const CustomSchedule& custom, const CustomStep& step,
                         const CustomPlace& place) {
  const std::uint32_t chunks = chunks_in(custom, place.buffer);
  if (std::uint64_t{place.chunk} + step.count <= chunks) return {};
  return bad_input("chunk " + std::to_string(place.chunk + step.count - 1) + " of the " +
                       std::string(to_text(place.buffer)) + ", which has " + std::to_string(chunks),
                   where(custom, step.line));
}

Result<void> check_step(const CustomSchedule& custom, const CustomBlock& block,
                        const CustomStep& step) {
  const auto wrong = [&](const std::string& what) {
    return bad_input(what, where(custom, step.line));
  };
  if (step.count == 0) return wrong("a step of no chunks");
  if (sim::reads_source(step.primitive)) RAILYARD_TRY(check_place(custom, step, step.source));
  if (sim::writes_target(step.primitive)) RAILYARD_TRY(check_place(custom, step, step.target));
  if (sim::writes_target(step.primitive) && step.target.buffer == Buffer::input && !custom.in_place)
    return wrong("it writes the input, and the schedule is not in place");
  if (sim::sends(step.primitive) && block.send_to == kNoPeer)
    return wrong("it sends, and the block has no peer to send to");
  if (sim::receives(step.primitive) && block.recv_from == kNoPeer)
    return wrong("it receives, and the block has no peer to receive from");
  return {};
}

using BlockKey = std::pair<std::uint32_t, std::uint32_t>;  // rank, id
using BlockIndex = std::map<BlockKey, std::size_t>;

Result<void> check_waits(const CustomSchedule& custom, const CustomBlock& block,
                         const BlockIndex& index) {
  for (const CustomStep& step : block.steps)
    for (const CustomStepId& after : step.after) {
      const auto found = index.find({block.rank, after.block});
      const std::string name = std::to_string(after.block) + "." + std::to_string(after.step);
      if (found == index.end() || after.step >= custom.blocks[found->second].steps.size())
        return bad_input("it waits for step " + name + " of its rank, which is not there",
                         where(custom, step.line));
      if (after.block == block.id)
        return bad_input(
            "it waits for step " + name + " of its own block, whose steps are in order",
            where(custom, step.line));
    }
  return {};
}

// Sender and receiver of every connection, by (from rank, to rank, channel).
struct Ends {
  std::int64_t from = -1;
  std::int64_t to = -1;
};
using Links = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Ends>;

Result<Links> find_links(const CustomSchedule& custom) {
  Links links;
  for (std::size_t b = 0; b < custom.blocks.size(); ++b) {
    const CustomBlock& block = custom.blocks[b];
    const auto take = [&](std::int64_t& end, const char* verb, std::int32_t peer) -> Result<void> {
      if (end >= 0)
        return bad_input(name_of(block) + " " + verb + " rank " + std::to_string(peer) +
                             " on channel " + std::to_string(block.channel) + ", as " +
                             name_of(custom.blocks[static_cast<std::size_t>(end)]) + " does",
                         where(custom, block.line));
      end = static_cast<std::int64_t>(b);
      return {};
    };
    if (block.send_to >= 0)
      RAILYARD_TRY(
          take(links[{block.rank, static_cast<std::uint32_t>(block.send_to), block.channel}].from,
               "sends to", block.send_to));
    if (block.recv_from >= 0)
      RAILYARD_TRY(
          take(links[{static_cast<std::uint32_t>(block.recv_from), block.rank, block.channel}].to,
               "receives from", block.recv_from));
  }
  for (const auto& [key, ends] : links) {
    if (ends.from >= 0 && ends.to >= 0) continue;
    const CustomBlock& block =
        custom.blocks[static_cast<std::size_t>(std::max(ends.from, ends.to))];
    const bool sends = ends.from >= 0;
    return bad_input(name_of(block) + (sends ? " sends to rank " : " receives from rank ") +
                         std::to_string(sends ? block.send_to : block.recv_from) + " on channel " +
                         std::to_string(block.channel) +
                         (sends ? ", which has no block that receives it"
                                : ", which has no block that sends it"),
                     where(custom, block.line));
  }
  return links;
}

Result<void> check_block(const CustomSchedule& custom, const CustomBlock& block) {
  const auto outside = [&](std::int32_t peer) {
    return peer != kNoPeer && (peer < 0 || static_cast<std::uint32_t>(peer) >= custom.ranks ||
                               static_cast<std::uint32_t>(peer) == block.rank);
  };
  if (block.rank >= custom.ranks || block.id > 0xffff)
    return bad_input(name_of(block) + " is of no rank, or its number is above 65535",
                     where(custom, block.line));
  if (outside(block.send_to) || outside(block.recv_from))
    return bad_input(name_of(block) + " has a peer that is no other rank",
                     where(custom, block.line));
  for (const CustomStep& step : block.steps) RAILYARD_TRY(check_step(custom, block, step));
  return {};
}

BlockIndex index_of(const CustomSchedule& custom) {
  BlockIndex index;
  for (std::size_t b = 0; b < custom.blocks.size(); ++b)
    index.try_emplace({custom.blocks[b].rank, custom.blocks[b].id}, b);
  return index;
}

Result<void> check_header(const CustomSchedule& custom) {
  const auto wrong = [&](const std::string& what) { return bad_input(what, custom.file); };
  if (custom.ranks == 0 || custom.ranks > kMaxCustomRanks)
    return wrong(std::to_string(custom.ranks) + " ranks; expected 1 to " +
                 std::to_string(kMaxCustomRanks));
  if (custom.root >= custom.ranks)
    return wrong("root " + std::to_string(custom.root) + " is none of " +
                 std::to_string(custom.ranks) + " ranks");
  if (custom.chunks == 0 || custom.chunks > kMaxCustomChunks || custom.scratch > kMaxCustomChunks)
    return wrong("a buffer of " + std::to_string(std::max(custom.chunks, custom.scratch)) +
                 " chunks; expected 1 to " + std::to_string(kMaxCustomChunks));
  if (cuts_all_ranks(custom.collective) && custom.chunks % custom.ranks != 0)
    return wrong(std::to_string(custom.chunks) + " chunks do not divide among " +
                 std::to_string(custom.ranks) + " ranks");
  if (custom.collective == Collective::all_to_all && custom.chunks % custom.ranks != 0)
    return wrong(std::to_string(custom.chunks) + " chunks do not divide among " +
                 std::to_string(custom.ranks) + " peers");
  if (custom.in_place && !sim::offers_in_place(custom.collective))
    return wrong(std::string(to_text(custom.collective)) + " cannot be in place");
  std::uint64_t operations = 0;
  for (const CustomBlock& block : custom.blocks)
    for (const CustomStep& step : block.steps) operations += step.count;
  if (operations > kMaxCustomOperations)
    return wrong(std::to_string(operations) + " operations; at most " +
                 std::to_string(kMaxCustomOperations) + " are possible");
  return {};
}

}  // namespace

Result<void> check_structure(const CustomSchedule& custom) {
  RAILYARD_TRY(check_header(custom));
  const BlockIndex index = index_of(custom);
  for (std::size_t b = 0; b < custom.blocks.size(); ++b) {
    const CustomBlock& block = custom.blocks[b];
    if (index.at({block.rank, block.id}) != b)
      return bad_input(name_of(block) + " is there twice", where(custom, block.line));
    RAILYARD_TRY(check_block(custom, block));
    RAILYARD_TRY(check_waits(custom, block, index));
  }
  if (auto links = find_links(custom); !links.ok()) return links.error();
  return {};
}

Result<CustomSchedule> read_custom_schedule(const std::string& file, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool xml = first != std::string::npos && text[first] == '<';
  return xml ? read_msccl(file, text) : read_schedule_text(file, text);
}

}  // namespace railyard::algorithms
