#include "models/zero/buckets.h"

#include <algorithm>
#include <map>

namespace railyard::models {

std::vector<ZeroBucket> zero_buckets(const NeuralNetwork& network,
                                     const std::vector<std::uint32_t>& arrivals,
                                     std::int64_t reduce_bucket_size) {
  std::vector<ZeroBucket> buckets;
  for (const std::uint32_t p : arrivals) {
    const std::int64_t elements = network.parameters()[p].elements;
    if (buckets.empty() || buckets.back().elements + elements > reduce_bucket_size)
      buckets.emplace_back();
    buckets.back().parameters.push_back(p);
    buckets.back().elements += elements;
  }
  return buckets;
}

std::vector<std::uint32_t> trained_parameters(const NeuralNetwork& network) {
  std::vector<std::uint32_t> trained;
  for (std::uint32_t p = 0; p < network.parameters().size(); ++p)
    if (network.parameters()[p].requires_grad) trained.push_back(p);
  return trained;
}

std::int64_t flat_elements(const NeuralNetwork& network, std::int64_t ranks) {
  std::int64_t sum = 0;
  for (const std::uint32_t p : trained_parameters(network)) sum += network.parameters()[p].elements;
  const std::int64_t alignment = 2 * ranks;
  return (sum + alignment - 1) / alignment * alignment;
}

std::vector<OwnedPart> owned_parts(const NeuralNetwork& network, const ZeroBucket& bucket,
                                   std::int64_t ranks) {
  std::vector<std::int64_t> begin(network.parameters().size(), 0);
  std::int64_t at = 0;
  for (const std::uint32_t p : trained_parameters(network)) {
    begin[p] = at;
    at += network.parameters()[p].elements;
  }
  const std::int64_t part = std::max<std::int64_t>(1, flat_elements(network, ranks) / ranks);
  std::map<std::uint32_t, std::int64_t> owned;
  for (const std::uint32_t p : bucket.parameters) {
    const std::int64_t end = begin[p] + network.parameters()[p].elements;
    for (std::int64_t from = begin[p]; from < end;) {
      const std::int64_t to = std::min(end, (from / part + 1) * part);
      owned[static_cast<std::uint32_t>(from / part)] += to - from;
      from = to;
    }
  }
  std::vector<OwnedPart> parts;
  for (const auto& [rank, elements] : owned) parts.push_back({rank, elements});
  return parts;
}

}  // namespace railyard::models
