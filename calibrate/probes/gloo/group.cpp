#include "calibrate/probes/gloo/group.h"

#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

namespace railyard::probe {
namespace {

using ContextPointer = std::shared_ptr<::gloo::Context>;
using Vector = std::vector<float>;
using Call = std::function<void()>;

class StoreForGloo : public ::gloo::rendezvous::Store {
 public:
  explicit StoreForGloo(probe::Store& store) : store_(store) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set("gloo/" + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get("gloo/" + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) store_.get("gloo/" + key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);  // the store has its own time limit
  }

 private:
  probe::Store& store_;  // the base class has that name too
};

// The library's older interface: an object per operation, with its buffers set up in advance.
template <typename Algorithm>
Call call_of(std::shared_ptr<Algorithm> algorithm) {
  return [algorithm] { algorithm->run(); };
}

template <template <typename> class Algorithm>
Call reduce_in_place(const ContextPointer& context, Vector& input, Vector&) {
  const std::vector<float*> pointers = {input.data()};
  return call_of(
      std::make_shared<Algorithm<float>>(context, pointers, static_cast<int>(input.size())));
}

template <typename T>
using RingChunked = ::gloo::AllreduceRingChunked<T>;

Call bcube(const ContextPointer& context, Vector& input, Vector& output) {
  if (context->size % 2 != 0) return nullptr;
  return reduce_in_place<::gloo::AllreduceBcube>(context, input, output);
}

Call gather_ring(const ContextPointer& context, Vector& input, Vector& output) {
  const auto share = static_cast<int>(output.size() / static_cast<std::size_t>(context->size));
  if (share == 0) return nullptr;
  const std::vector<const float*> pointers = {input.data()};
  return call_of(
      std::make_shared<::gloo::AllgatherRing<float>>(context, pointers, output.data(), share));
}

Call broadcast_one_to_all(const ContextPointer& context, Vector& input, Vector&) {
  const std::vector<float*> pointers = {input.data()};
  return call_of(std::make_shared<::gloo::BroadcastOneToAll<float>>(
      context, pointers, static_cast<int>(input.size())));
}

// The newer one: options filled in for every call, as PyTorch does.
void reduce_segmented(const ContextPointer& context, Vector& input, Vector& output,
                      ::gloo::AllreduceOptions::Algorithm algorithm) {
  ::gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setInput(input.data(), input.size());
  options.setOutput(output.data(), output.size());
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&::gloo::sum<float>));
  ::gloo::allreduce(options);
}

Call segmented_ring(const ContextPointer& context, Vector& input, Vector& output) {
  return [context, &input, &output] {
    reduce_segmented(context, input, output, ::gloo::AllreduceOptions::Algorithm::RING);
  };
}

Call segmented_bcube(const ContextPointer& context, Vector& input, Vector& output) {
  return [context, &input, &output] {
    reduce_segmented(context, input, output, ::gloo::AllreduceOptions::Algorithm::BCUBE);
  };
}

Call segmented_gather(const ContextPointer& context, Vector& input, Vector& output) {
  const std::size_t share = output.size() / static_cast<std::size_t>(context->size);
  if (share == 0) return nullptr;
  return [context, &input, &output, share] {
    ::gloo::AllgatherOptions options(context);
    options.setInput(input.data(), share);
    options.setOutput(output.data(), share * static_cast<std::size_t>(context->size));
    ::gloo::allgather(options);
  };
}

Call broadcast_tree(const ContextPointer& context, Vector&, Vector& output) {
  return [context, &output] {
    ::gloo::BroadcastOptions options(context);
    options.setOutput(output.data(), output.size());
    options.setRoot(0);
    ::gloo::broadcast(options);
  };
}

}  // namespace

const std::vector<GlooAlgorithm>& gloo_algorithms() {
  static const std::vector<GlooAlgorithm> all = {
      {"AllReduce", "ring", reduce_in_place<::gloo::AllreduceRing>},
      {"AllReduce", "ring-chunked", reduce_in_place<RingChunked>},
      {"AllReduce", "halving-doubling", reduce_in_place<::gloo::AllreduceHalvingDoubling>},
      {"AllReduce", "bcube", bcube},
      {"AllReduce", "segmented-ring", segmented_ring},
      {"AllReduce", "segmented-bcube", segmented_bcube},
      {"AllGather", "ring", gather_ring},
      {"AllGather", "segmented", segmented_gather},
      {"Broadcast", "one-to-all", broadcast_one_to_all},
      {"Broadcast", "tree", broadcast_tree}};
  return all;
}

GlooDevice make_gloo_device(const std::string& address, const std::string& interface) {
  ::gloo::transport::tcp::attr attributes;
  attributes.hostname = address;
  attributes.iface = interface;
  return ::gloo::transport::tcp::CreateDevice(attributes);
}

GlooGroup::GlooGroup(Store& store, GlooDevice device) {
  const auto context = std::make_shared<::gloo::rendezvous::Context>(
      static_cast<int>(store.rank()), static_cast<int>(store.world()));
  StoreForGloo adapter(store);
  context->connectFullMesh(adapter, device);
  context_ = context;
}

Call GlooGroup::prepare(const GlooAlgorithm& algorithm, std::size_t bytes) {
  input_.assign(bytes / sizeof(float), 1.0F);
  output_.assign(bytes / sizeof(float), 0.0F);
  if (input_.empty()) return nullptr;
  return algorithm.make(context_, input_, output_);
}

void GlooGroup::barrier() {
  ::gloo::BarrierOptions options(context_);
  options.setTag(1);
  ::gloo::barrier(options);
}

int GlooGroup::ranks() const { return context_->size; }

std::string gloo_version() {
  return std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) + "." +
         std::to_string(GLOO_VERSION_PATCH);
}

}  // namespace railyard::probe
