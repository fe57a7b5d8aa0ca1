#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "calibrate/probes/common/error.h"
#include "calibrate/probes/common/store.h"
#include "calibrate/probes/common/threads.h"

namespace probe = railyard::probe;

namespace {

// Clears every launcher's variables, sets these, and restores nothing: one test case per process.
void set_environment(const std::map<std::string, std::string>& variables) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK",
        "PMI_SIZE", "PMIX_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MPI_LOCALRANKID",
        "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "MASTER_ADDR", "MASTER_PORT"})
    unsetenv(name);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
}

std::string completion_error(probe::Identity who) {
  try {
    who.complete();
  } catch (const probe::UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks exchange values, count and wait for one another") {
  probe::StoreServer server({"127.0.0.1", 0});
  constexpr std::int64_t kWorld = 5;
  std::atomic<int> arrived{0};
  probe::Threads threads;
  for (std::int64_t rank = 0; rank < kWorld; ++rank)
    threads.start([&, rank] {
      probe::Store store({rank, kWorld, rank, {"127.0.0.1", server.port()}}, 20);
      // Later ranks set what earlier ones already wait for.
      if (rank == kWorld - 1) store.set("late", std::string("a\0b", 3));
      if (store.get("late") != std::string("a\0b", 3)) throw probe::ProbeError("value");
      const auto all = store.all_gather("names", "rank " + std::to_string(rank));
      if (all.size() != kWorld || all[3] != "rank 3") throw probe::ProbeError("gather");
      ++arrived;
      store.barrier("first");
      if (arrived != kWorld) throw probe::ProbeError("barrier");
      store.barrier("second");
    });
  threads.join();
  CHECK(arrived == kWorld);
}

TEST_CASE("a stranger's port and a silent rank 0 are errors, not hangs") {
  const probe::Socket silent = probe::listen_on({"127.0.0.1", 0});
  const probe::Identity who{0, 1, 0, {"127.0.0.1", probe::local_port(silent)}};
  CHECK_THROWS_WITH_AS(probe::Store(who, 0.3), "the other side was silent for too long",
                       probe::ProbeError);
  probe::Threads stranger;
  stranger.start([&] {
    for (int i = 0; i < 2; ++i)
      if (const probe::Socket peer = probe::accept_from(silent, 10); i == 1)
        peer.send_text("HTTP/1.1 400");
  });
  CHECK_THROWS_WITH_AS(probe::Store(who, 5),
                       ("at 127.0.0.1 port " + std::to_string(who.meeting.port) +
                        " there is no rank 0 of this program")
                           .c_str(),
                       probe::ProbeError);
  stranger.join();
}

TEST_CASE("nobody listens: the reason and the address") {
  const std::int64_t port = [] { return probe::local_port(probe::listen_on({"127.0.0.1", 0})); }();
  const probe::Identity who{0, 1, 0, {"127.0.0.1", port}};
  CHECK_THROWS_WITH_AS(
      probe::Store(who, 0.1),
      ("cannot connect to 127.0.0.1 port " + std::to_string(port) + ": Connection refused").c_str(),
      probe::ProbeError);
}

TEST_CASE("a rank's identity comes from its launcher") {
  set_environment({});
  probe::Identity alone;
  alone.complete();
  CHECK(alone.rank == 0);
  CHECK(alone.world == 1);
  CHECK(alone.meeting.address == "127.0.0.1");

  set_environment({{"OMPI_COMM_WORLD_RANK", "9"},
                   {"OMPI_COMM_WORLD_SIZE", "16"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  CHECK(completion_error({}) == "several processes need --address, the host of rank 0");
  probe::Identity mpi{-1, -1, -1, {"node01", 5}};
  mpi.complete();
  CHECK(mpi.rank == 9);
  CHECK(mpi.world == 16);
  CHECK(mpi.local_rank == 1);

  set_environment({{"RANK", "3"},
                   {"WORLD_SIZE", "4"},
                   {"LOCAL_RANK", "0"},
                   {"MASTER_ADDR", "host7"},
                   {"MASTER_PORT", "1234"}});
  probe::Identity torchrun;
  torchrun.complete();
  CHECK(torchrun.rank == 3);
  CHECK(torchrun.meeting.address == "host7");
  CHECK(torchrun.meeting.port == 1234);

  set_environment({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "4"}});
  CHECK(completion_error({}) == "rank 5 of 4 makes no sense: give --rank and --world");
}
