#include "models/horovod/horovod.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>

namespace railyard::models {
namespace {

using sim::GpuEventId;
using sim::Kernel;
using sim::Task;

}  // namespace

// What the ranks' controllers hold in common: the rounds of negotiation, and the order of the
// cache.
class HorovodJob::Controller {
 public:
  struct Round {
    sim::HostFlag over;
    std::size_t arrived = 0;
    std::size_t left = 0;
    std::vector<std::size_t> count;     // by tensor: ranks that have it ready
    std::vector<std::uint32_t> order;   // of rank 0
    std::vector<FusedTensors> buffers;  // decided by the last to arrive
    std::vector<std::uint32_t> agreed;
    bool cached = true;
    std::size_t ending = 0;  // ranks whose training is over
    bool ends = false;
  };

  explicit Controller(const HorovodProgram& program) : program_(program) {}

  void add_rank() { ++ranks_; }

  // A rank brings its ready tensors, in its order; the last one decides.
  Round& arrive(std::int64_t number, const std::vector<std::uint32_t>& ready, bool rank_zero,
                bool ending) {
    while (first_ + static_cast<std::int64_t>(rounds_.size()) <= number)
      rounds_.emplace_back().count.resize(program_.tensors.size());
    Round& round = rounds_[static_cast<std::size_t>(number - first_)];
    for (const std::uint32_t tensor : ready) ++round.count[tensor];
    if (rank_zero) round.order = ready;
    round.ending += ending ? 1 : 0;
    if (++round.arrived < ranks_) return round;
    decide(round);
    round.over.raise();
    return round;
  }
  // A rank has done what the round decided; the last one forgets it.
  void leave(Round& round) {
    if (++round.left < ranks_) return;
    while (!rounds_.empty() && rounds_.front().left == ranks_) {
      rounds_.pop_front();
      ++first_;
    }
  }

  std::vector<FusedTensors> buffers;  // of the iteration under way, then the last
  std::int64_t cycles = 0;
  std::size_t reduced = 0;  // tensors of the iteration under way
  std::optional<sim::Error> failure;

 private:
  void decide(Round& round) {
    for (const std::uint32_t tensor : round.order)
      if (round.count[tensor] == ranks_) round.agreed.push_back(tensor);
    for (const std::uint32_t tensor : round.agreed)
      if (std::ranges::find(cache_, tensor) == cache_.end()) {
        cache_.push_back(tensor);
        round.cached = false;
      }
    std::ranges::sort(round.agreed, {}, [&](std::uint32_t tensor) {
      return std::ranges::find(cache_, tensor) - cache_.begin();
    });
    round.buffers = fuse(program_.tensors, round.agreed, program_.options.fusion_threshold);
    round.ends = round.ending == ranks_ || failure.has_value();
    if (round.agreed.empty()) return;
    if (reduced == program_.arrival.size()) {
      buffers.clear();
      reduced = 0;
      cycles = 0;
    }
    buffers.insert(buffers.end(), round.buffers.begin(), round.buffers.end());
    reduced += round.agreed.size();
    ++cycles;
  }

  const HorovodProgram& program_;
  std::size_t ranks_ = 0;
  std::deque<Round> rounds_;
  std::int64_t first_ = 0;            // number of rounds_.front()
  std::vector<std::uint32_t> cache_;  // in the order of their first reduction
};

// One rank: its training thread and its background thread.
class HorovodJob::Process {
 public:
  Process(const HorovodProgram& program, Controller& controller, WorkloadRank& rank)
      : program_(program),
        controller_(controller),
        rank_(rank),
        background_(rank.host->another_thread()),
        ready_(program.tensors.size()),
        handles_(program.tensors.size()) {}

  Task train() {
    background_->start(run_background());
    for (std::int64_t i = 0; i < program_.options.iterations; ++i) co_await step();
    ending_ = true;
    co_await rank_.host->until(background_over_);
    co_await rank_.host->synchronize(rank_.compute);
  }

 private:
  struct Handle {
    std::unique_ptr<sim::HostFlag> launched = std::make_unique<sim::HostFlag>();
    GpuEventId done{};
  };

  Task step() {
    sim::HostThread& host = *rank_.host;
    co_await host.begin_iteration();
    rank_.begin_iteration();
    const std::int64_t passes = program_.options.backward_passes_per_step;
    for (std::int64_t pass = 1; pass <= passes; ++pass) {
      for (const Kernel& kernel : program_.forward) co_await host.launch(rank_.compute, kernel);
      if (pass == passes) rank_.marks.back().forward_end = rank_.record(rank_.compute);
      co_await backward(pass);
    }
    rank_.marks.back().backward_end = rank_.record(rank_.compute);
    co_await synchronize();
    for (const Kernel& kernel : program_.optimizer) co_await host.launch(rank_.compute, kernel);
    rank_.marks.back().end = rank_.record(rank_.compute);
    co_await host.end_iteration(rank_.compute);
  }

  Task backward(std::int64_t pass) {
    sim::HostThread& host = *rank_.host;
    const bool sends = pass == program_.options.backward_passes_per_step;
    for (const HorovodProgram::Pass& layer : program_.backward) {
      for (const Kernel& kernel : layer.kernels) co_await host.launch(rank_.compute, kernel);
      for (const std::uint32_t tensor : layer.tensors) {
        if (pass > 1) co_await host.launch(rank_.compute, program_.accumulate[tensor]);
        if (sends && !program_.compress.empty())
          co_await host.launch(rank_.compute, program_.compress[tensor]);
        co_await host.busy(host.costs().grad_hook);
        if (!sends) continue;
        ready_[tensor] = rank_.record(rank_.compute);
        queue_.push_back(tensor);
      }
    }
  }

  // DistributedOptimizer.synchronize: handle by handle.
  Task synchronize() {
    sim::HostThread& host = *rank_.host;
    for (const std::uint32_t tensor : program_.arrival) {
      Handle& handle = handles_[tensor];
      co_await host.until(*handle.launched);
      if (controller_.failure) co_return;
      co_await host.until(handle.done);
      rank_.wait(rank_.compute, handle.done);
      if (!program_.decompress.empty())
        co_await host.launch(rank_.compute, program_.decompress[tensor]);
      handle = {};
    }
  }

  // RunLoopOnce, over and over.
  Task run_background() {
    sim::HostThread& host = *background_;
    sim::Time last{};
    for (std::int64_t cycle = 0;; ++cycle) {
      const sim::Time next = last + program_.options.cycle_time;
      if (next > host.now()) co_await host.busy(next - host.now());
      last = host.now();
      const bool zero = rank_.groups.front().group_rank == 0;
      Controller::Round& round = controller_.arrive(cycle, queue_, zero, ending_);
      co_await host.until(round.over);
      co_await host.busy(negotiation_time(program_.options, round.cached));
      for (const std::uint32_t tensor : round.agreed) std::erase(queue_, tensor);
      for (const FusedTensors& buffer : round.buffers) co_await reduce(buffer);
      const bool ends = round.ends;
      controller_.leave(round);
      if (ends) break;
    }
    if (controller_.failure)
      for (Handle& handle : handles_) handle.launched->raise();
    background_over_.raise();
  }

  // PerformOperation: the host polls the tensors' events, then launches.
  Task reduce(const FusedTensors& buffer) {
    sim::HostThread& host = *background_;
    const HorovodTensor& first = program_.tensors[buffer.tensors.front()];
    const auto call =
        rank_.add_call({0, sim::Collective::all_reduce, buffer.size, element_size(first.dtype), 0});
    if (!call.ok()) {
      controller_.failure = call.error();
      co_return;
    }
    for (const std::uint32_t tensor : buffer.tensors) co_await host.until(ready_[tensor]);
    const sim::StreamId stream = rank_.groups.front().stream;
    const bool fused = buffer.tensors.size() > 1;
    if (fused) co_await host.launch(stream, copy(buffer, program_.copy_in));
    co_await host.busy(host.costs().collective_launch);
    rank_.enqueue({call.value(), program_.all_reduce}, {});
    co_await host.launch(
        stream, fused ? copy(buffer, program_.copy_out) : program_.divide[buffer.tensors.front()]);
    const GpuEventId done = rank_.record(stream);
    for (const std::uint32_t tensor : buffer.tensors) {
      handles_[tensor].done = done;
      handles_[tensor].launched->raise();
    }
  }

  Kernel copy(const FusedTensors& buffer, std::uint32_t name) const {
    return named(program_.kernels.move(buffer.size * 2), name);
  }

  const HorovodProgram& program_;
  Controller& controller_;
  WorkloadRank& rank_;
  std::unique_ptr<sim::HostThread> background_;
  std::vector<std::uint32_t> queue_;  // tensors that this rank has, in their order
  std::vector<GpuEventId> ready_;     // by tensor
  std::vector<Handle> handles_;       // by tensor
  bool ending_ = false;
  sim::HostFlag background_over_;
};

HorovodJob::HorovodJob(const HorovodProgram& program)
    : program_(program), controller_(std::make_unique<Controller>(program)) {}
HorovodJob::~HorovodJob() = default;

Task HorovodJob::start(WorkloadRank& rank) {
  controller_->add_rank();
  processes_.push_back(std::make_unique<Process>(program_, *controller_, rank));
  return processes_.back()->train();
}

const std::optional<sim::Error>& HorovodJob::failure() const { return controller_->failure; }
const std::vector<FusedTensors>& HorovodJob::last_buffers() const { return controller_->buffers; }
std::int64_t HorovodJob::last_cycles() const { return controller_->cycles; }

sim::Duration negotiation_time(const HorovodOptions& options, bool cached) {
  const auto ranks = static_cast<std::uint64_t>(options.ranks);
  const std::int64_t messages = ranks > 1 ? std::bit_width(ranks - 1) : 0;
  return options.controller_latency * (cached ? messages : 3 * messages);
}

Result<HorovodProgram> build_horovod_program(const NeuralNetwork& network,
                                             const HorovodOptions& options,
                                             const KernelModel& kernels, sim::Trace& trace,
                                             CallTable& calls) {
  RAILYARD_TRY(check_batch(network, options.layers.samples));
  HorovodProgram program{.options = options, .kernels = kernels};
  std::vector<std::uint32_t> tensor_of(network.parameters().size());
  std::int64_t elements = 0;
  for (std::uint32_t p = 0; p < network.parameters().size(); ++p) {
    const Parameter& parameter = network.parameters()[p];
    if (!parameter.requires_grad) continue;
    tensor_of[p] = static_cast<std::uint32_t>(program.tensors.size());
    const bool halved = options.fp16_compression && element_size(parameter.dtype) > 2;
    program.tensors.push_back({parameter.elements, halved ? Dtype::fp16 : parameter.dtype});
    const Bytes size = sim::bytes(parameter.elements * element_size(parameter.dtype));
    const Bytes sent = sim::bytes(parameter.elements * element_size(program.tensors.back().dtype));
    const auto move = [&](Bytes traffic, const char* name) {
      return named(kernels.move(traffic), trace.name(name));
    };
    program.accumulate.push_back(move(size * 3, "accumulate gradient"));
    program.divide.push_back(move(sent * 2, "divide gradient"));
    if (options.fp16_compression) {
      program.compress.push_back(move(size + sent, "compress gradient"));
      program.decompress.push_back(move(size + sent, "decompress gradient"));
    }
    elements += parameter.elements;
  }
  if (program.tensors.empty())
    return sim::bad_input("no parameter requires a gradient: Horovod has nothing to reduce");
  const GradientOrder order = gradient_order(network);
  std::vector<std::vector<std::uint32_t>> arrive(network.layers().size());
  for (const GradientOrder::Arrival& arrival : order.arrivals) {
    program.arrival.push_back(tensor_of[arrival.parameter]);
    arrive[arrival.layer].push_back(program.arrival.back());
  }
  for (std::size_t l = 0; l < network.layers().size(); ++l)
    add_forward(network.layers()[l], options.layers, kernels, trace, program.forward);
  for (std::size_t l = network.layers().size(); l-- > 0;) {
    HorovodProgram::Pass& pass = program.backward.emplace_back();
    add_backward(network.layers()[l], options.layers, kernels, trace, pass.kernels);
    pass.tensors = arrive[l];
  }
  program.optimizer = optimizer_kernels(
      program.tensors.size(), sim::bytes(elements * options.optimizer_bytes), kernels, trace);
  program.copy_in = trace.name("copy into fusion buffer");
  program.copy_out = trace.name("copy out of fusion buffer");
  program.all_reduce = trace.name("AllReduce");
  for (const FusedTensors& buffer :
       fuse(program.tensors, program.arrival, options.fusion_threshold))
    calls.add({0, sim::Collective::all_reduce, buffer.size,
               element_size(program.tensors[buffer.tensors.front()].dtype), 0});
  return program;
}

}  // namespace railyard::models
