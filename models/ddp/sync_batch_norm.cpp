#include "models/ddp/sync_batch_norm.h"

#include <fmt/format.h>

namespace railyard::models {
namespace {

constexpr std::int64_t kStatistic = 4;            // bytes: statistics are fp32
constexpr TorchVersion kMasksEmptyInputs{1, 12};  // pull request 74944

std::int64_t gathered_values(std::int64_t channels) { return 2 * channels + 1; }

// Passes over N activations out of `all` that a plain batch norm's kernel makes.
Bytes share(Bytes traffic, std::int64_t passes, std::int64_t all) { return traffic * passes / all; }

}  // namespace

Result<std::vector<SyncedNorm>> synced_norms(const NeuralNetwork& network) {
  std::vector<SyncedNorm> norms;
  std::int64_t statistics = 0;
  for (std::size_t l = 0; l < network.layers().size(); ++l) {
    const Layer& layer = network.layers()[l];
    if (layer.kind != LayerKind::norm || layer.parameters.empty()) continue;
    const std::int64_t channels = network.parameters()[layer.parameters.front()].elements;
    if (layer.measured)
      return sim::bad_input(fmt::format(
          "convert_sync_batchnorm needs layers without measured times: '{}' was measured as a "
          "whole, and its statistics are exchanged in the midst of it",
          layer.name));
    norms.push_back({l, channels});
    statistics += 2 * channels;
  }
  if (norms.empty() || statistics != network.buffers().fp32_elements)
    return sim::bad_input(
        fmt::format("convert_sync_batchnorm: '{}' has no batch norms; its {} norm layers would "
                    "keep {} running means "
                    "and variances, and it has {} fp32 buffer elements",
                    network.name(), norms.size(), statistics, network.buffers().fp32_elements));
  return norms;
}

DdpCall norm_forward_call(const SyncedNorm& norm) {
  return {sim::Collective::all_gather, sim::bytes(gathered_values(norm.channels) * kStatistic),
          kStatistic};
}

DdpCall norm_backward_call(const SyncedNorm& norm) {
  return {sim::Collective::all_reduce, sim::bytes(2 * norm.channels * kStatistic), kStatistic};
}

void NormWriter::forward(const Layer& layer, std::int64_t channels, std::uint32_t number,
                         Pass out) const {
  const auto move = [&](Bytes traffic, const std::string& name) {
    out.kernels.push_back(named(kernels->move(traffic), trace->name(name)));
  };
  // As in network.h: x is read twice and y written.
  const Bytes whole = forward_traffic(layer, layers.samples, layers.compute);
  const Bytes local = sim::bytes(gathered_values(channels) * kStatistic);
  move(share(whole, 1, 3), "statistics " + layer.name);
  move(local * 2, "pack statistics");
  out.syncs.push_back({out.kernels.size(), number, true, version >= kMasksEmptyInputs});
  move(local * ranks, "merge statistics");
  move(share(whole, 2, 3), layer.name);
}

void NormWriter::backward(const Layer& layer, std::int64_t channels, std::uint32_t number,
                          Pass out) const {
  const auto move = [&](Bytes traffic, const std::string& name) {
    out.kernels.push_back(named(kernels->move(traffic), trace->name(name)));
  };
  // dy and x are read twice and dx written; without dx there is nothing to exchange.
  const Bytes whole = dgrad_traffic(layer, layers.samples, layers.compute);
  if (!layer.has_dgrad) {
    move(share(forward_traffic(layer, layers.samples, layers.compute), 2, 3),
         "wgrad " + layer.name);
    return;
  }
  move(share(whole, 2, 5), "sums " + layer.name);
  move(sim::bytes(2 * channels * kStatistic * 2), "pack sums");
  out.syncs.push_back({out.kernels.size(), number, false, false});
  move(share(whole, 3, 5), "dgrad " + layer.name);
}

}  // namespace railyard::models
