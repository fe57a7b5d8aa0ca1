// CustomSchedule: a schedule that its author wrote down, from a file of ours (read_text.h) or of
// MSCCL's (read_msccl.h), and its way into a sim::Schedule.
//
// The buffer of the collective is cut into `chunks` equal chunks (AllGather, ReduceScatter, Gather,
// Scatter: the buffer of all ranks together); the input and output of one rank hold as many of them
// as the collective gives it, the scratch as many as the file says. A *block* is a thread block
// (CTA) of one rank with at most one peer to send to and one to receive from; its steps run in
// order, once for every portion of a chunk that fits into a FIFO step. Sends and receives between
// two blocks match in order. Steps wait for steps of other blocks of their rank by `after`.
//
// In place, input and output are one buffer and a step may write either.
//
// Invariant: check_structure() passed for what a reader returns. Cost of everything: O(steps).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/point_to_point.h"
#include "sim/collective.h"
#include "sim/result.h"
#include "sim/schedule.h"

namespace railyard::algorithms {

struct CustomPlace {
  sim::Buffer buffer = sim::Buffer::input;
  std::uint32_t chunk = 0;
};

// A step of another block of the same rank, by the block's id and the step's number in it.
struct CustomStepId {
  std::uint32_t block = 0;
  std::uint32_t step = 0;
};

struct CustomStep {
  sim::Primitive primitive = sim::Primitive::send;
  CustomPlace source;  // as far as the primitive has one
  CustomPlace target;
  std::uint32_t count = 1;  // successive chunks
  std::vector<CustomStepId> after;
  std::uint32_t line = 0;
};

inline constexpr std::int32_t kNoPeer = -1;

struct CustomBlock {
  std::uint32_t rank = 0;
  std::uint32_t id = 0;  // within its rank
  std::uint32_t channel = 0;
  std::int32_t send_to = kNoPeer;
  std::int32_t recv_from = kNoPeer;
  std::vector<CustomStep> steps;
  std::uint32_t line = 0;
};

struct CustomSchedule {
  std::string file;  // for errors
  std::string name;
  bool any_collective = false;  // the file does not say which
  sim::Collective collective = sim::Collective::all_reduce;
  sim::Protocol protocol = sim::Protocol::simple;
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;
  std::uint32_t chunks = 1;
  bool in_place = false;
  std::uint32_t scratch = 0;  // chunks of the rank that has most
  std::vector<CustomBlock> blocks;
};

// What is wrong with a schedule before any size is known: ranks, ids, peers without a counterpart,
// chunks outside their buffers, writes to the input out of place, waits for steps that are not
// there. Errors name file and line.
sim::Result<void> check_structure(const CustomSchedule& custom);

struct CustomSize {
  sim::Bytes size;  // as CollectiveCall::size
  std::int64_t element_size = 4;
  sim::Bytes portion{};  // largest bytes of one operation; 0 = a FIFO step of the protocol
};

// Error: a size that the chunks do not divide. `layout` gives the NICs between nodes; null: none.
sim::Result<sim::Schedule> build_custom(const CustomSchedule& custom, const CustomSize& size,
                                        const P2pLayout* layout);

// What the data-flow checker says of it, with several portions per chunk, so that loops overlap.
struct CustomProof {
  std::vector<sim::Collective> proved;  // one, or none; several where the file says no collective
  std::string problem;                  // the first thing that is wrong, if none is proved
  std::int64_t slices = 0;              // operations for one portion of every chunk
  std::int64_t messages = 0;
};
CustomProof prove_custom(const CustomSchedule& custom);

// By the file's first character: XML is MSCCL's form. Errors name file and line.
sim::Result<CustomSchedule> read_custom_schedule(const std::string& file, const std::string& text);

}  // namespace railyard::algorithms
