// Connections with several queue pairs: each pair's flow has the path that the fabric's hash gives
// it, and messages on different pairs are under way at once.
#include "sim/executor.h"

namespace railyard::sim {
namespace {

// The message that a pair carries, or that comes next on it.
std::uint32_t message_of(const QueuePair& pair, const ConnectionCost& cost) {
  return cost.split ? pair.carried : pair.carried * queue_pairs(cost) + pair.number;
}

}  // namespace

// Every idle pair begins what comes next on it, once the proxy has served it and the receiver has
// room.
void Executor::start_queue_pairs(std::uint32_t c) {
  const ConnectionCost& cost = costs_->connections[c];
  const std::uint32_t end = first_pair_[c] + queue_pairs(cost);
  for (std::uint32_t p = first_pair_[c]; p < end; ++p) {
    QueuePair& pair = pairs_[p];
    const std::uint32_t message = message_of(pair, cost);
    if (pair.busy || message >= connections_[c].served || !is_cleared(c, message)) continue;
    pair.busy = true;
    const Bytes size = bytes(wire(c, slice(c, message).size));
    network_->start(pair.flow, pair_bytes(cost, message, pair.number, size));
  }
}

// A message is through when its last part is, and its sender and receiver see it after those before
// it: NCCL's proxies test the oldest request alone.
void Executor::pair_done(std::uint32_t p) {
  QueuePair& pair = pairs_[p];
  const std::uint32_t c = pair.connection;
  --parts_left_[slot(c, message_of(pair, costs_->connections[c]))];
  ++pair.carried;
  pair.busy = false;
  start_queue_pairs(c);
  ConnectionState& connection = connections_[c];
  while (connection.wired < connection.served && parts_left_[slot(c, connection.wired)] == 0) {
    free_slot(c);
    on_the_way(c);
  }
}

}  // namespace railyard::sim
