// The names NCCL's log uses, in NCCL's own numbering (older lines print the numbers). Algorithms
// and protocols are algorithms/nccl's; the log has more functions than the chooser knows.
#pragma once

#include <array>
#include <cstddef>

#include "algorithms/nccl/names.h"
#include "sim/enum_table.h"

namespace railyard::calibrate::nccl_log {

enum class Function {  // the first five have rows in the tuning table
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_reduce,
  send_recv,
  send,
  recv,
  all_to_all,
  gather,
  scatter
};
inline constexpr std::size_t kTunedFunctions = algorithms::nccl::kFunctions;

using algorithms::nccl::Algorithm;
using algorithms::nccl::kAlgorithms;
using algorithms::nccl::kProtocols;
using algorithms::nccl::Protocol;

enum class Transport { p2p, shm, net, collnet };
enum class Direction { unsaid, send, receive };

}  // namespace railyard::calibrate::nccl_log

namespace railyard::sim {

template <>
struct EnumTable<calibrate::nccl_log::Function> {
  using Function = calibrate::nccl_log::Function;
  static constexpr std::string_view kind = "NCCL function";
  static constexpr std::array entries{EnumEntry{Function::broadcast, "Broadcast"},
                                      EnumEntry{Function::reduce, "Reduce"},
                                      EnumEntry{Function::all_gather, "AllGather"},
                                      EnumEntry{Function::reduce_scatter, "ReduceScatter"},
                                      EnumEntry{Function::all_reduce, "AllReduce"},
                                      EnumEntry{Function::send_recv, "SendRecv"},
                                      EnumEntry{Function::send, "Send"},
                                      EnumEntry{Function::recv, "Recv"},
                                      EnumEntry{Function::all_to_all, "AlltoAll"},
                                      EnumEntry{Function::gather, "Gather"},
                                      EnumEntry{Function::scatter, "Scatter"}};
};

template <>
struct EnumTable<calibrate::nccl_log::Transport> {
  using Transport = calibrate::nccl_log::Transport;
  static constexpr std::string_view kind = "NCCL transport";
  static constexpr std::array entries{
      EnumEntry{Transport::p2p, "P2P"}, EnumEntry{Transport::shm, "SHM"},
      EnumEntry{Transport::net, "NET"}, EnumEntry{Transport::collnet, "COLLNET"}};
};

}  // namespace railyard::sim
