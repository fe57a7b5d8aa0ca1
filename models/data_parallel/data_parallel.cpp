#include "models/data_parallel/data_parallel.h"

#include <algorithm>

namespace railyard::models {
namespace {

using sim::Collective;
using sim::Kernel;
using sim::Task;

// Tensors per type, as both cutters keep them; `full` closes a piece before or after an addition.
template <typename ClosesBefore, typename ClosesAfter>
std::vector<CoalescedPiece> cut(const NeuralNetwork& network, ClosesBefore before,
                                ClosesAfter after) {
  std::vector<CoalescedPiece> closed;
  std::vector<std::pair<Dtype, CoalescedPiece>> open;
  for (std::uint32_t index = 0; index < network.parameters().size(); ++index) {
    const Parameter& parameter = network.parameters()[index];
    auto found =
        std::ranges::find_if(open, [&](const auto& one) { return one.first == parameter.dtype; });
    if (found == open.end())
      found = open.insert(open.end(),
                          {parameter.dtype, {.element_size = element_size(parameter.dtype)}});
    CoalescedPiece& piece = found->second;
    const auto close = [&] {
      closed.push_back(piece);
      piece.parameters.clear();
      piece.size = {};
    };
    const Bytes size = sim::bytes(parameter.elements * piece.element_size);
    if (piece.size.raw() > 0 && before(piece.size + size)) close();
    piece.parameters.push_back(index);
    piece.size += size;
    if (after(piece.size)) close();
  }
  for (const auto& [dtype, piece] : open)
    if (!piece.parameters.empty()) closed.push_back(piece);
  return closed;
}

constexpr Bytes kLimit = Bytes::from_raw(kCoalescedBytes);

struct Builder {
  const KernelModel& kernels;
  sim::Trace& trace;
  CallTable& calls;

  [[nodiscard]] NamedCall call(Collective collective, Bytes size, std::int64_t element,
                               const char* name) const {
    return {calls.add({0, collective, size, element, 0}), trace.name(name)};
  }
  [[nodiscard]] std::vector<DataParallelProgram::Piece> build(
      const std::vector<CoalescedPiece>& pieces, Collective collective, const char* name) const {
    std::vector<DataParallelProgram::Piece> out;
    for (const CoalescedPiece& piece : pieces) {
      out.push_back({call(collective, piece.size, piece.element_size, name), {}});
      if (piece.parameters.size() > 1)
        out.back().flatten.push_back(named(kernels.move(piece.size * 2), trace.name("flatten")));
    }
    return out;
  }
  void add_buffers(std::int64_t elements, std::int64_t element,
                   std::vector<DataParallelProgram::Piece>& out) const {
    for (std::int64_t left = elements * element; left > 0; left -= kCoalescedBytes)
      out.push_back({call(Collective::broadcast, sim::bytes(std::min(left, kCoalescedBytes)),
                          element, "Broadcast buffers"),
                     {}});
  }
};

}  // namespace

std::vector<CoalescedPiece> broadcast_pieces(const NeuralNetwork& network) {
  return cut(
      network, [](Bytes) { return false; }, [](Bytes size) { return size >= kLimit; });
}

std::vector<CoalescedPiece> reduce_pieces(const NeuralNetwork& network) {
  return cut(
      network, [](Bytes size) { return size > kLimit; }, [](Bytes) { return false; });
}

Result<DataParallelProgram> build_data_parallel_program(const NeuralNetwork& network,
                                                        const DataParallelOptions& options,
                                                        const KernelModel& kernels,
                                                        sim::Trace& trace) {
  RAILYARD_TRY(check_batch(network, options.layers.samples));
  DataParallelProgram program;
  const Builder builder{kernels, trace, program.calls};
  const Bytes input = options.input_per_sample * options.layers.samples;
  const Bytes output = options.output_per_sample * options.layers.samples;
  program.scatter_inputs = builder.call(Collective::scatter, input, 1, "scatter inputs");
  program.gather_outputs = builder.call(Collective::gather, output, 1, "gather outputs");
  program.scatter_gradients =
      builder.call(Collective::scatter, output, 1, "scatter output gradients");
  program.replicate =
      builder.build(broadcast_pieces(network), Collective::broadcast, "Broadcast parameters");
  builder.add_buffers(network.buffers().fp32_elements, 4, program.replicate);
  builder.add_buffers(network.buffers().int64_elements, 8, program.replicate);
  program.reduce = builder.build(reduce_pieces(network), Collective::reduce, "Reduce gradients");
  for (const Layer& layer : network.layers())
    add_forward(layer, options.layers, kernels, trace, program.forward);
  for (std::size_t l = network.layers().size(); l-- > 0;)
    add_backward(network.layers()[l], options.layers, kernels, trace, program.backward);
  // Outputs of all GPUs are read, then their gradients written from them.
  program.loss.push_back(named(kernels.move(output * options.devices), trace.name("loss")));
  program.loss.push_back(
      named(kernels.move(output * options.devices * 2), trace.name("loss backward")));
  program.optimizer = optimizer_kernels(
      network.parameters().size(), sim::bytes(parameter_count(network) * options.optimizer_bytes),
      kernels, trace);
  program.replicate_host = options.replicate_module *
                           static_cast<std::int64_t>(network.layers().size()) * options.devices;
  program.gil_fraction = options.gil_fraction;
  program.iteration_count = options.iterations;
  return program;
}

DataParallelProcess::DataParallelProcess(const DataParallelProgram& program, std::int64_t devices)
    : program_(program), ranks_(static_cast<std::size_t>(devices)) {
  for (std::int64_t i = 0; i < program.iteration_count; ++i) {
    Step& step = steps_.emplace_back();
    step.forward_done.resize(ranks_.size());
    step.backward_done.resize(ranks_.size());
  }
}

Task DataParallelProcess::thread(WorkloadRank& rank) {
  ranks_[rank.groups.front().group_rank] = &rank;
  return run(rank);
}

Task DataParallelProcess::run(WorkloadRank& rank) {
  const bool main = &rank == ranks_.front();
  for (Step& step : steps_)
    if (main)
      co_await main_step(step);
    else
      co_await replica_step(rank, step);
  co_await rank.host->synchronize(rank.compute);
}

Task DataParallelProcess::collective(NamedCall call) {
  sim::HostThread& host = *main_rank().host;
  co_await host.busy(host.costs().collective_launch * static_cast<std::int64_t>(ranks_.size()));
  for (WorkloadRank* rank : ranks_)
    rank->wait(rank->compute, rank->enqueue(call, rank->record(rank->compute)));
}

Task DataParallelProcess::pieces(const std::vector<DataParallelProgram::Piece>& pieces,
                                 bool flatten_everywhere) {
  sim::HostThread& host = *main_rank().host;
  for (const DataParallelProgram::Piece& piece : pieces) {
    for (const Kernel& kernel : piece.flatten)
      for (WorkloadRank* rank : ranks_) {
        if (rank != &main_rank() && !flatten_everywhere) continue;
        co_await host.busy(host.costs().op_launch);
        rank->host->gpu().launch(rank->compute, kernel);
      }
    co_await collective(piece.call);
  }
}

Task DataParallelProcess::forward(WorkloadRank& rank, sim::HostFlag& done) {
  sim::HostThread& host = *rank.host;
  const auto held = sim::picoseconds(static_cast<std::int64_t>(
      static_cast<double>(host.costs().op_launch.count()) * program_.gil_fraction));
  for (const Kernel& kernel : program_.forward) {
    const sim::Time now = host.now();
    const sim::Time start = std::max(now, gil_free_);
    gil_free_ = start + held;
    co_await host.busy(start - now);
    co_await host.launch(rank.compute, kernel);
  }
  done.raise();
}

Task DataParallelProcess::backward(WorkloadRank& rank, sim::HostFlag& done) {
  for (const Kernel& kernel : program_.backward) co_await rank.host->launch(rank.compute, kernel);
  rank.marks.back().backward_end = rank.record(rank.compute);
  done.raise();
}

Task DataParallelProcess::main_step(Step& step) {
  WorkloadRank& rank = main_rank();
  sim::HostThread& host = *rank.host;
  co_await host.begin_iteration();
  for (WorkloadRank* each : ranks_) each->begin_iteration();
  co_await collective(program_.scatter_inputs);
  co_await pieces(program_.replicate, false);
  co_await host.busy(program_.replicate_host);
  step.forward.raise();
  co_await forward(rank, step.forward_done.front());
  for (sim::HostFlag& done : step.forward_done) co_await host.until(done);
  for (WorkloadRank* each : ranks_) each->marks.back().forward_end = each->record(each->compute);
  co_await collective(program_.gather_outputs);
  for (const Kernel& kernel : program_.loss) co_await host.launch(rank.compute, kernel);
  co_await collective(program_.scatter_gradients);
  step.backward.raise();
  co_await backward(rank, step.backward_done.front());
  for (sim::HostFlag& done : step.backward_done) co_await host.until(done);
  co_await pieces(program_.reduce, true);
  for (const Kernel& kernel : program_.optimizer) co_await host.launch(rank.compute, kernel);
  for (WorkloadRank* each : ranks_) each->marks.back().end = each->record(each->compute);
  co_await host.end_iteration(rank.compute);
}

Task DataParallelProcess::replica_step(WorkloadRank& rank, Step& step) {
  const std::size_t index = rank.groups.front().group_rank;
  co_await rank.host->until(step.forward);
  co_await forward(rank, step.forward_done[index]);
  co_await rank.host->until(step.backward);
  co_await backward(rank, step.backward_done[index]);
}

}  // namespace railyard::models
