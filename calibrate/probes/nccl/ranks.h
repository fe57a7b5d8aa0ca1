// This process's ranks of one communicator: on every GPU of the host, or one rank of many hosts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "calibrate/probes/common/store.h"
#include "calibrate/probes/cuda/check.h"
#include "calibrate/probes/nccl/api.h"

namespace railyard::probe::nccl {

struct LocalRank {
  LocalRank(int rank_, int device, std::size_t bytes)
      : rank(rank_),
        stream(device),
        start(device),
        stop(device),
        send(Buffer::on_device(device, bytes)),
        receive(Buffer::on_device(device, bytes)) {}
  [[nodiscard]] int device() const { return stream.device(); }

  int rank;
  Stream stream;
  Event start, stop;
  Buffer send, receive;
  Comm comm = nullptr;
};

class Ranks {
 public:
  // One rank on each of the devices (which may repeat), all in this process.
  Ranks(const Api& api, const std::vector<int>& devices, std::size_t bytes);
  // Rank `store.rank()` of `store.world()`, on one device.
  Ranks(const Api& api, Store& store, int device, std::size_t bytes);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Communicators; `name` tells one creation from another between processes. Returns the time.
  double create(const std::string& name);
  void destroy();

  [[nodiscard]] int world() const { return world_; }
  [[nodiscard]] bool first() const { return local_.front()->rank == 0; }
  [[nodiscard]] const std::vector<std::unique_ptr<LocalRank>>& local() const { return local_; }
  [[nodiscard]] Store* store() const { return store_; }  // null: one process
  [[nodiscard]] const Api& api() const { return api_; }

 private:
  const Api& api_;
  Store* store_ = nullptr;
  int world_;
  std::vector<std::unique_ptr<LocalRank>> local_;
};

}  // namespace railyard::probe::nccl
