#include "calibrate/probes/nccl/ranks.h"

#include <chrono>
#include <cstring>

namespace railyard::probe::nccl {

Ranks::Ranks(const Api& api, const std::vector<int>& devices, std::size_t bytes)
    : api_(api), world_(static_cast<int>(devices.size())) {
  for (int rank = 0; rank < world_; ++rank)
    local_.push_back(
        std::make_unique<LocalRank>(rank, devices[static_cast<std::size_t>(rank)], bytes));
}

Ranks::Ranks(const Api& api, Store& store, int device, std::size_t bytes)
    : api_(api), store_(&store), world_(static_cast<int>(store.world())) {
  local_.push_back(std::make_unique<LocalRank>(static_cast<int>(store.rank()), device, bytes));
}

Ranks::~Ranks() {
  for (const auto& rank : local_)
    if (rank->comm != nullptr) api_.abort(rank->comm);  // after a failure: waits for nobody
}

double Ranks::create(const std::string& name) {
  UniqueId id{};
  if (store_ != nullptr) {
    if (first()) {
      api_.check(api_.get_unique_id(&id), "ncclGetUniqueId");
      store_->set("id/" + name, std::string(id.bytes, sizeof id.bytes));
    }
    const std::string text = store_->get("id/" + name);
    if (text.size() != sizeof id.bytes) throw ProbeError("rank 0 sent no NCCL id");
    std::memcpy(id.bytes, text.data(), sizeof id.bytes);
  }
  const auto start = std::chrono::steady_clock::now();
  if (store_ != nullptr) {
    LocalRank& rank = *local_.front();
    const OnDevice here(rank.device());
    api_.check(api_.init_rank(&rank.comm, world_, id, rank.rank), "ncclCommInitRank");
  } else {
    std::vector<int> devices;
    for (const auto& rank : local_) devices.push_back(rank->device());
    std::vector<Comm> comms(devices.size(), nullptr);
    api_.check(api_.init_all(comms.data(), world_, devices.data()), "ncclCommInitAll");
    for (std::size_t i = 0; i < comms.size(); ++i) local_[i]->comm = comms[i];
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count();
}

void Ranks::destroy() {
  // Grouped, since destroying one communicator may wait for the others of its group.
  api_.check(api_.group_start(), "ncclGroupStart");
  for (const auto& rank : local_) {
    const OnDevice here(rank->device());
    api_.check(api_.destroy(std::exchange(rank->comm, nullptr)), "ncclCommDestroy");
  }
  api_.check(api_.group_end(), "ncclGroupEnd");
}

}  // namespace railyard::probe::nccl
