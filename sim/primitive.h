// What one operation of a lane does with a slice, and where it reads and writes.
//
// Names of primitives are NCCL's. Each has a *source* and a *target* buffer (Op::source,
// Op::target); by default these are the user's buffers, so that "source -> peers" is "input ->
// peers". With Buffer::none as source nothing of the rank's own is added: recvReduceSend is then
// the sum of the peers, as a switch or the head of a node makes it.
#pragma once

#include <cstdint>

#include "sim/enum_table.h"

namespace railyard::sim {

enum class Primitive : std::uint8_t {
  send,                   // source -> peers
  recv,                   // peer -> target
  copy,                   // source -> target (no peer)
  copy_send,              // source -> target and peers
  recv_copy_send,         // peer -> target and peers
  recv_reduce_copy,       // sum of peers and source -> target
  recv_reduce_send,       // sum of peers and source -> peers
  recv_reduce_copy_send,  // sum of peers and source -> target and peers
  reduce,                 // source is added into target (no peer)
  nop                     // nothing; waits and signals only
};
template <>
struct EnumTable<Primitive> {
  static constexpr std::string_view kind = "primitive";
  static constexpr std::array entries{
      EnumEntry{Primitive::send, "send"},
      EnumEntry{Primitive::recv, "recv"},
      EnumEntry{Primitive::copy, "copy"},
      EnumEntry{Primitive::copy_send, "copySend"},
      EnumEntry{Primitive::recv_copy_send, "recvCopySend"},
      EnumEntry{Primitive::recv_reduce_copy, "recvReduceCopy"},
      EnumEntry{Primitive::recv_reduce_send, "recvReduceSend"},
      EnumEntry{Primitive::recv_reduce_copy_send, "recvReduceCopySend"},
      EnumEntry{Primitive::reduce, "reduce"},
      EnumEntry{Primitive::nop, "nop"}};
};
constexpr bool receives(Primitive p) {
  return p != Primitive::send && p != Primitive::copy && p != Primitive::copy_send &&
         p != Primitive::reduce && p != Primitive::nop;
}
constexpr bool sends(Primitive p) {
  return p != Primitive::recv && p != Primitive::copy && p != Primitive::recv_reduce_copy &&
         p != Primitive::reduce && p != Primitive::nop;
}
constexpr bool reads_source(Primitive p) {
  return p != Primitive::recv && p != Primitive::recv_copy_send && p != Primitive::nop;
}
constexpr bool writes_target(Primitive p) {
  return p != Primitive::send && p != Primitive::recv_reduce_send && p != Primitive::nop;
}

enum class Buffer : std::uint8_t { input, output, scratch, none };
template <>
struct EnumTable<Buffer> {
  static constexpr std::string_view kind = "buffer";
  static constexpr std::array entries{
      EnumEntry{Buffer::input, "input"}, EnumEntry{Buffer::output, "output"},
      EnumEntry{Buffer::scratch, "scratch"}, EnumEntry{Buffer::none, "none"}};
};

// A message may be filled and read by several operations, as PAT does: `index` counts parts of one
// operation's size within it, `ahead` messages after the next one, and `more` leaves it open (at
// the sender: not posted; at the receiver: not consumed). A part that is written twice is added to.
// Parts that nobody writes are sent all the same when a later one is.
struct MessagePart {
  std::uint16_t index = 0;
  std::uint8_t ahead = 0;
  bool more = false;

  [[nodiscard]] constexpr bool whole() const { return index == 0 && ahead == 0 && !more; }
  friend constexpr bool operator==(const MessagePart&, const MessagePart&) = default;
};

}  // namespace railyard::sim
