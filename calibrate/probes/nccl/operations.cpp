#include "calibrate/probes/nccl/operations.h"

namespace railyard::probe::nccl {
namespace {

void all_reduce(const Ranks& ranks, LocalRank& rank, std::size_t count) {
  const Api& api = ranks.api();
  api.check(api.all_reduce(rank.send.as<void>(), rank.receive.as<void>(), count, kFloat, kSum,
                           rank.comm, rank.stream),
            "ncclAllReduce");
}

void all_gather(const Ranks& ranks, LocalRank& rank, std::size_t count) {
  const Api& api = ranks.api();
  api.check(api.all_gather(rank.send.as<void>(), rank.receive.as<void>(), count, kFloat, rank.comm,
                           rank.stream),
            "ncclAllGather");
}

void reduce_scatter(const Ranks& ranks, LocalRank& rank, std::size_t count) {
  const Api& api = ranks.api();
  api.check(api.reduce_scatter(rank.send.as<void>(), rank.receive.as<void>(), count, kFloat, kSum,
                               rank.comm, rank.stream),
            "ncclReduceScatter");
}

void broadcast(const Ranks& ranks, LocalRank& rank, std::size_t count) {
  const Api& api = ranks.api();
  api.check(api.broadcast(rank.send.as<void>(), rank.receive.as<void>(), count, kFloat, 0,
                          rank.comm, rank.stream),
            "ncclBroadcast");
}

void send_receive(const Ranks& ranks, LocalRank& rank, std::size_t count) {
  const Api& api = ranks.api();
  const int next = (rank.rank + 1) % ranks.world();
  const int previous = (rank.rank + ranks.world() - 1) % ranks.world();
  api.check(api.send(rank.send.as<void>(), count, kFloat, next, rank.comm, rank.stream),
            "ncclSend");
  api.check(api.receive(rank.receive.as<void>(), count, kFloat, previous, rank.comm, rank.stream),
            "ncclRecv");
}

// Of sends and receives, as every version has them; ncclAlltoAll came with 2.28.
void all_to_all(const Ranks& ranks, LocalRank& rank, std::size_t count) {
  const Api& api = ranks.api();
  for (int peer = 0; peer < ranks.world(); ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * count;
    api.check(api.send(rank.send.as<float>() + offset, count, kFloat, peer, rank.comm, rank.stream),
              "ncclSend");
    api.check(
        api.receive(rank.receive.as<float>() + offset, count, kFloat, peer, rank.comm, rank.stream),
        "ncclRecv");
  }
}

void enqueue_locals(const Operation& operation, const Ranks& ranks, std::size_t count) {
  for (const auto& rank : ranks.local()) {
    const OnDevice here(rank->device());
    operation.enqueue(ranks, *rank, count);
  }
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = {
      {"AllReduce", false, all_reduce},        {"AllGather", true, all_gather},
      {"ReduceScatter", true, reduce_scatter}, {"Broadcast", false, broadcast},
      {"SendRecv", false, send_receive},       {"AlltoAll", true, all_to_all}};
  return all;
}

const Operation& operation_of(const std::string& name) {
  for (const Operation& operation : operations())
    if (name == operation.name) return operation;
  throw UsageError("there is no operation '" + name + "'");
}

std::size_t count_of(const Operation& operation, std::int64_t bytes, int world) {
  const auto elements = static_cast<std::size_t>(bytes) / sizeof(float);
  return operation.divided ? elements / static_cast<std::size_t>(world) : elements;
}

void enqueue(const Operation& operation, const Ranks& ranks, std::size_t count) {
  const Api& api = ranks.api();
  api.check(api.group_start(), "ncclGroupStart");
  try {
    enqueue_locals(operation, ranks, count);
  } catch (...) {
    api.group_end();  // else the next group would be part of this one
    throw;
  }
  api.check(api.group_end(), "ncclGroupEnd");
}

double estimate(const Operation& operation, const Ranks& ranks, std::size_t count) {
  const Api& api = ranks.api();
  if (api.simulate_end == nullptr) return -1;
  SimulationInfo info;
  api.check(api.group_start(), "ncclGroupStart");
  try {
    enqueue_locals(operation, ranks, count);
  } catch (...) {
    api.group_end();
    throw;
  }
  api.check(api.simulate_end(&info), "ncclGroupSimulateEnd");
  return static_cast<double>(info.estimated_us);
}

}  // namespace railyard::probe::nccl
