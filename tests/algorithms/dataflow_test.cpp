// Every schedule of this folder, proved by the data-flow checker: it moves symbols for the bytes, so
// a rank that ends with anything but what the collective promises is found, and so is a hang.
#include "sim/dataflow.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "algorithms/channels.h"
#include "algorithms/communicator.h"
#include "tests/algorithms/clusters.h"

namespace railyard::algorithms {
namespace {
using sim::Algorithm;
using sim::bytes;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;

TEST_CASE("speed probe") {
  for (std::uint32_t n : {8u, 33u}) {
    const auto topology = test::cluster({.nodes = 1, .gpus = n});
    const auto group = test::everyone(topology);
    auto comm = Communicator::create(topology, group, test::random_channels(n, 8, 1));
    REQUIRE(comm.ok());
    for (auto p : {Protocol::ll, Protocol::simple, Protocol::plain}) {
      CollectiveCall call;
      call.size = bytes(4 << 20);
      call.protocol = p;
      auto s = comm.value()->schedule(call);
      REQUIRE(s.ok());
      auto t = std::chrono::steady_clock::now();
      auto r = sim::check_dataflow(*s.value());
      CHECK_MESSAGE(r.ok(), (r.ok() ? std::string() : r.error().text()));
      MESSAGE(n << " " << (r.ok() ? r.value().slices : 0) << " slices " << std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count());
    }
  }
}
}  // namespace
}  // namespace railyard::algorithms
