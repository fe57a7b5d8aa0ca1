// One rank's view of a Gloo group over TCP, and the algorithms the library offers.
//
//   operation   algorithm          the library's
//   AllReduce   ring               AllreduceRing: every step moves the whole vector
//   AllReduce   ring-chunked       AllreduceRingChunked: reduce-scatter and all-gather rings
//   AllReduce   halving-doubling   AllreduceHalvingDoubling
//   AllReduce   bcube              AllreduceBcube, for even numbers of ranks
//   AllReduce   segmented-ring     gloo::allreduce, which PyTorch's Gloo backend calls
//   AllReduce   segmented-bcube    the same with its other algorithm
//   AllGather   ring               AllgatherRing
//   AllGather   segmented          gloo::allgather, which PyTorch calls
//   Broadcast   one-to-all         BroadcastOneToAll
//   Broadcast   tree               gloo::broadcast, which PyTorch calls
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/probes/common/store.h"

namespace gloo {
class Context;
namespace transport {
class Device;
}
}  // namespace gloo

namespace railyard::probe {

struct GlooAlgorithm;

using GlooDevice = std::shared_ptr<::gloo::transport::Device>;

// `address` is this host's, "" for its name's; `interface` wins where it is given.
GlooDevice make_gloo_device(const std::string& address, const std::string& interface);

class GlooGroup {
 public:
  GlooGroup(Store& store, GlooDevice device);

  // A call that is complete on this rank when it returns, or null where the algorithm does not
  // work for this number of ranks or elements. AllGather's bytes are those of the gathered vector.
  std::function<void()> prepare(const GlooAlgorithm& algorithm, std::size_t bytes);
  void barrier();
  [[nodiscard]] int ranks() const;

 private:
  std::shared_ptr<::gloo::Context> context_;
  std::vector<float> input_, output_;
};

struct GlooAlgorithm {
  std::string operation, name;
  std::function<void()> (*make)(const std::shared_ptr<::gloo::Context>& context,
                                std::vector<float>& input, std::vector<float>& output);
};

const std::vector<GlooAlgorithm>& gloo_algorithms();
std::string gloo_version();

}  // namespace railyard::probe
