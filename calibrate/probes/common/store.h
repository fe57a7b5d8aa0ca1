// Where the ranks of a probe meet: a small key-value store over TCP.
//
// Rank 0's process holds the values; every rank, rank 0 too, is a client. A value is set once and
// then only read, so that a get() that waits has one meaning. Keys and values are at most 1 MiB.
//
//   StoreServer server({"0.0.0.0", 29400});        // in rank 0
//   Store store({"node01", 29400}, who);
//   store.set("id", bytes);   store.get("id");     // waits until somebody has set it
//   store.barrier("warm");                         // a name may be used once
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/common/socket.h"

namespace railyard::probe {

// Who this process is. Arguments win over the environment of a launcher: Open MPI
// (OMPI_COMM_WORLD_*), MPICH and Intel MPI (PMI_*, MPI_LOCALRANKID), Slurm (SLURM_PROCID, ...),
// torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT).
struct Identity {
  std::int64_t rank = -1;  // -1 until known
  std::int64_t world = -1;
  std::int64_t local_rank = -1;
  Endpoint meeting{"", 29400};

  void add_arguments(Args& args);
  void complete();  // from the environment; throws UsageError when rank and world do not fit
};

class StoreServer {
 public:
  explicit StoreServer(const Endpoint& at);
  ~StoreServer();  // gives the clients a few seconds to leave first
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  [[nodiscard]] std::int64_t port() const { return port_; }

 private:
  void accept_clients();
  void serve(const Socket& client);
  std::string answer(const std::string& verb, const std::string& key, const std::string& value);

  Socket listener_;
  std::int64_t port_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> counters_;
  std::list<Socket> clients_;  // each is read by its own thread
  std::vector<std::thread> threads_;
  std::size_t present_ = 0;  // clients connected now
  bool stopping_ = false;
  std::thread acceptor_;
};

class Store {
 public:
  Store(const Identity& who, double timeout_seconds);

  void set(const std::string& key, const std::string& value);
  std::string get(const std::string& key);
  std::int64_t add(const std::string& key);  // the number of calls so far, this one included
  void barrier(const std::string& name);
  // Everybody's value, by rank.
  std::vector<std::string> all_gather(const std::string& name, const std::string& mine);

  [[nodiscard]] std::int64_t rank() const { return rank_; }
  [[nodiscard]] std::int64_t world() const { return world_; }

 private:
  std::string ask(const std::string& verb, const std::string& key, const std::string& value);

  std::int64_t rank_, world_;
  Socket socket_;
};

}  // namespace railyard::probe
