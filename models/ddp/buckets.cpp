#include "models/ddp/buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace railyard::models {
namespace {

using sim::bad_input;

constexpr TorchVersion kOldest{1, 7};          // the first with the rebuild as it is now
constexpr TorchVersion kLastBucketCap{1, 10};  // pull request 62748
constexpr TorchVersion kUnlimitedAtStart{1, 12};
constexpr TorchVersion kGivenCapIsFirstCap{2, 4};  // pull request 121640
constexpr TorchVersion kCapList{2, 11};            // pull request 169026

struct Accumulator {
  Dtype dtype = Dtype::fp32;
  std::uint32_t device = 0;
  std::size_t limit = 0;  // position in the list of limits
  Bucket open;
};

// Keys are few (element types times devices), so a scan beats a map.
Accumulator& accumulator_of(std::vector<Accumulator>& all, const BucketTensor& tensor) {
  const auto found = std::ranges::find_if(all, [&](const Accumulator& a) {
    return a.dtype == tensor.dtype && a.device == tensor.device;
  });
  if (found != all.end()) return *found;
  all.push_back({.dtype = tensor.dtype, .device = tensor.device, .limit = 0, .open = {}});
  return all.back();
}

Bytes size_of(const BucketTensor& tensor) {
  return sim::bytes(tensor.elements * element_size(tensor.dtype));
}

std::uint32_t smallest_index(const Bucket& bucket) {
  return *std::ranges::min_element(bucket.parameters);
}

std::vector<std::uint32_t> registration_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

Result<Bytes> cap_bytes(double mebibytes, const char* key) {
  // The quotient keeps the cast below defined.
  if (!std::isfinite(mebibytes) || mebibytes < 0 || mebibytes > 8e12)
    return bad_input(
        fmt::format("{} must be a number of MiB from 0 to 8e12, not {}", key, mebibytes));
  return sim::bytes(static_cast<std::int64_t>(mebibytes * 1024 * 1024));  // truncates, as int()
}

struct Limits {
  std::vector<Bytes> construction;
  std::vector<Bytes> rebuild;
};

Result<std::vector<Bytes>> list_limits(const std::vector<double>& caps) {
  if (caps.empty()) return bad_input("bucket_cap_mb_list is empty");
  std::vector<Bytes> limits;
  for (const double cap : caps) {
    RAILYARD_ASSIGN(const Bytes limit, cap_bytes(cap, "bucket_cap_mb_list"));
    limits.push_back(limit);
  }
  return limits;
}

Result<Limits> choose_limits(const BucketOptions& options) {
  if (options.bucket_cap_mb_list) {
    RAILYARD_ASSIGN(auto limits, list_limits(*options.bucket_cap_mb_list));
    return Limits{.construction = limits, .rebuild = limits};
  }
  RAILYARD_ASSIGN(const Bytes cap,
                  cap_bytes(options.bucket_cap_mb.value_or(kDefaultBucketCapMb), "bucket_cap_mb"));
  const Bytes first = options.first_bucket_bytes.value_or(kDefaultFirstBucket);
  const bool small_first =
      !options.bucket_cap_mb.has_value() || options.version < kGivenCapIsFirstCap;
  Limits limits;
  limits.rebuild = small_first ? std::vector{first, cap} : std::vector{cap};
  const bool bucketed_at_start = options.version < kUnlimitedAtStart ||
                                 (options.find_unused_parameters && !options.static_graph);
  limits.construction = bucketed_at_start ? limits.rebuild : std::vector{kUnlimitedBucket};
  return limits;
}

Result<void> check_options(const BucketOptions& options) {
  const auto too_old = [&](const char* what, const TorchVersion& since) -> Result<void> {
    return sim::Error{sim::ErrorCode::unsupported,
                      fmt::format("{} needs PyTorch {}.{} or later, not {}.{}", what, since.major,
                                  since.minor, options.version.major, options.version.minor),
                      {}};
  };
  if (options.version < kOldest) return too_old("the model of DDP's buckets", kOldest);
  if (options.ddp_set_last_bucket_cap && options.version < kLastBucketCap)
    return too_old("DDP_SET_LAST_BUCKET_CAP", kLastBucketCap);
  if (options.bucket_cap_mb_list && options.version < kCapList)
    return too_old("bucket_cap_mb_list", kCapList);
  if (options.first_bucket_bytes && options.first_bucket_bytes->raw() < 0)
    return bad_input("first_bucket_bytes must not be negative");
  return {};
}

// The indices missing from `arrival`; an error where it is not a partial permutation.
Result<std::vector<std::uint32_t>> find_unused(std::size_t count,
                                               std::span<const std::uint32_t> arrival) {
  std::vector<bool> seen(count, false);
  for (const std::uint32_t index : arrival) {
    if (index >= count)
      return bad_input(fmt::format("gradient of parameter {} arrives, but there are {} parameters",
                                   index, count));
    if (seen[index]) return bad_input(fmt::format("parameter {} arrives twice", index));
    seen[index] = true;
  }
  std::vector<std::uint32_t> unused;
  for (std::uint32_t index = 0; index < count; ++index)
    if (!seen[index]) unused.push_back(index);
  return unused;
}

BucketList rebuilt(std::span<const BucketTensor> tensors, std::vector<std::uint32_t> order,
                   const std::vector<Bytes>& limits, bool small_last) {
  if (!small_last) return assign_buckets(tensors, limits, order);
  std::ranges::reverse(order);
  BucketList buckets = assign_buckets(tensors, limits, order);
  std::ranges::reverse(buckets);  // the buckets only: inside, the reversed order stays
  return buckets;
}

}  // namespace

BucketList assign_buckets(std::span<const BucketTensor> tensors, std::span<const Bytes> limits,
                          std::span<const std::uint32_t> order) {
  RAILYARD_CHECK(!limits.empty(), "a bucket needs a size limit");
  const bool registered = order.empty();
  const std::vector<std::uint32_t> indices =
      registered ? registration_order(tensors.size())
                 : std::vector<std::uint32_t>(order.begin(), order.end());
  BucketList closed;
  std::vector<Accumulator> accumulators;
  for (const std::uint32_t index : indices) {
    RAILYARD_CHECK(index < tensors.size(), "a tensor index is within the list");
    const BucketTensor& tensor = tensors[index];
    if (tensor.sparse) {
      closed.push_back({.parameters = {index}, .size = size_of(tensor)});
      continue;
    }
    Accumulator& accumulator = accumulator_of(accumulators, tensor);
    accumulator.open.parameters.push_back(index);
    accumulator.open.size += size_of(tensor);
    if (accumulator.open.size < limits[accumulator.limit]) continue;
    closed.push_back(std::move(accumulator.open));
    accumulator.open = {};
    if (accumulator.limit + 1 < limits.size()) ++accumulator.limit;
  }
  std::ranges::reverse(accumulators);
  for (Accumulator& accumulator : accumulators)
    if (!accumulator.open.parameters.empty()) closed.push_back(std::move(accumulator.open));
  if (registered) std::ranges::sort(closed, {}, smallest_index);
  return closed;
}

const BucketList& BucketPlan::of_iteration(std::int64_t iteration) const {
  RAILYARD_CHECK(iteration >= 1, "iterations count from 1");
  return iterations[static_cast<std::size_t>(std::min<std::int64_t>(iteration, 3) - 1)];
}

Result<BucketPlan> plan_buckets(std::span<const BucketTensor> tensors,
                                std::span<const std::uint32_t> arrival,
                                const BucketOptions& options) {
  RAILYARD_TRY(check_options(options));
  if (tensors.empty()) return bad_input("no parameter requires a gradient: DDP has nothing to do");
  RAILYARD_ASSIGN(const Limits limits, choose_limits(options));
  BucketPlan plan;
  RAILYARD_ASSIGN(plan.unused, find_unused(tensors.size(), arrival));
  const bool dynamic_unused = options.find_unused_parameters && !options.static_graph;
  if (!plan.unused.empty() && !dynamic_unused && !options.static_graph)
    return bad_input(
        fmt::format("{} parameters receive no gradient (the first is number {}): "
                    "PyTorch stops in iteration 2 unless find_unused_parameters or "
                    "static_graph is set",
                    plan.unused.size(), plan.unused.front()));

  // Python reverses the list of buckets, not the buckets: it takes registration for run order.
  BucketList first = assign_buckets(tensors, limits.construction);
  std::ranges::reverse(first);
  plan.iterations = {first, first, first};
  plan.first_iteration_at_end = options.static_graph;
  if (dynamic_unused) return plan;

  std::vector<std::uint32_t> order(arrival.begin(), arrival.end());
  order.insert(order.end(), plan.unused.begin(), plan.unused.end());
  plan.rebuild_before_iteration = options.static_graph ? 3 : 2;
  plan.iterations[2] =
      rebuilt(tensors, std::move(order), limits.rebuild, options.ddp_set_last_bucket_cap);
  if (!options.static_graph) plan.iterations[1] = plan.iterations[2];
  return plan;
}

BucketInputs bucket_inputs(const NeuralNetwork& network) {
  BucketInputs inputs;
  std::vector<std::uint32_t> to_ddp(network.parameters().size());
  for (std::uint32_t index = 0; index < network.parameters().size(); ++index) {
    const Parameter& parameter = network.parameters()[index];
    if (!parameter.requires_grad) continue;
    to_ddp[index] = static_cast<std::uint32_t>(inputs.tensors.size());
    inputs.to_network.push_back(index);
    inputs.tensors.push_back({.elements = parameter.elements,
                              .dtype = parameter.dtype,
                              .device = 0,
                              .sparse = parameter.sparse});
  }
  for (const auto& arrival : gradient_order(network).arrivals)
    inputs.arrival.push_back(to_ddp[arrival.parameter]);
  return inputs;
}

Result<BucketPlan> plan_buckets(const NeuralNetwork& network, const BucketOptions& options) {
  const BucketInputs inputs = bucket_inputs(network);
  return plan_buckets(inputs.tensors, inputs.arrival, options);
}

}  // namespace railyard::models
