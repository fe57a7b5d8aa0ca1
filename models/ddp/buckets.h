// Which gradients PyTorch's DistributedDataParallel reduces together, and in which order.
//
// assign_buckets() is torch.distributed._compute_bucket_assignment_by_size. State is kept per
// (dtype, device): an accumulator and a position in the list of size limits. A tensor is appended
// to its key's accumulator; when the sum then reaches the current limit the bucket closes and the
// key moves to the next limit (the last one repeats). So no tensor is split and a bucket overshoots
// by up to one tensor. A sparse tensor is a bucket of its own.
//   without `order`: tensors as registered; buckets sorted by their smallest index
//   with `order`:    tensors in that order; buckets in the order they closed
// Buckets left open at the end follow. PyTorch takes several of them in hash-map order; here the
// key seen last comes first, which is what libstdc++'s map mostly does.
// Cost: O(tensors * keys).
//
// plan_buckets() adds what happens around it (PyTorch 1.7 to 2.13):
//                                   construction               rebuild
//   default, since 1.12             one unlimited limit        before iteration 2
//   static_graph, since 1.12        one unlimited limit        before iteration 3
//   find_unused_parameters          [first, cap]; since 2.4    never
//                                   [cap] if the cap is given
//   before 1.12                     [first, cap]               as above
//   bucket_cap_mb_list              the list                   as above
// The rebuild assigns in arrival order with [first, cap]; since 2.4 a given bucket_cap_mb is also
// the first limit. `first` is dist._DEFAULT_FIRST_BUCKET_BYTES. static_graph wins over
// find_unused_parameters, and puts unused parameters at the end, by index.
// Source: torch/nn/parallel/distributed.py and reducer.cpp of 1.13 and 2.x; checked against 1.13
// by the oracle tests.
//
// Example: ResNet-50 by default is one 102 MB bucket in iteration 1 and, from iteration 2, five of
// 8196000, 31502336, 26255360, 26550272 and 9724160 bytes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/nn/dtype.h"
#include "models/nn/network.h"
#include "sim/units.h"

namespace railyard::models {

inline constexpr Bytes kUnlimitedBucket = Bytes::from_raw(INT64_MAX);
inline constexpr Bytes kDefaultFirstBucket = Bytes::from_raw(std::int64_t{1} << 20);
inline constexpr double kDefaultBucketCapMb = 25;

struct BucketTensor {
  std::int64_t elements = 0;
  Dtype dtype = Dtype::fp32;
  std::uint32_t device = 0;
  bool sparse = false;
};

struct Bucket {
  std::vector<std::uint32_t> parameters{};  // indices in the order of the flat buffer
  Bytes size{};
  friend bool operator==(const Bucket&, const Bucket&) = default;
};
using BucketList = std::vector<Bucket>;

// `limits` must not be empty; `order` holds indices into `tensors`, each at most once.
BucketList assign_buckets(std::span<const BucketTensor> tensors, std::span<const Bytes> limits,
                          std::span<const std::uint32_t> order = {});

struct TorchVersion {
  int major = 2;
  int minor = 13;
  friend auto operator<=>(const TorchVersion&, const TorchVersion&) = default;
};

struct BucketOptions {
  std::optional<double> bucket_cap_mb{};  // MiB; not given is not the same as 25
  TorchVersion version{};
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;       // does not change the buckets, only the copies
  std::optional<Bytes> first_bucket_bytes{};  // dist._DEFAULT_FIRST_BUCKET_BYTES, 1 MiB
  bool ddp_set_last_bucket_cap = false;       // DDP_SET_LAST_BUCKET_CAP=1, since 1.10
  std::optional<std::vector<double>> bucket_cap_mb_list{};  // MiB per bucket, since 2.11
};

struct BucketPlan {
  // Iterations 1, 2 and 3 in LAUNCH order; the third list serves all later iterations.
  std::array<BucketList, 3> iterations{};
  std::optional<int> rebuild_before_iteration{};  // 2 or 3; the rebuild opens that forward
  bool first_iteration_at_end = false;  // static_graph: iteration 1 launches after all backward
  std::vector<std::uint32_t> unused{};  // parameters without a gradient, ascending

  // `iteration` counts from 1.
  [[nodiscard]] const BucketList& of_iteration(std::int64_t iteration) const;
};

// `arrival` lists tensor indices in the order their gradients arrive; the ones it leaves out are
// unused. Unused parameters without find_unused_parameters or static_graph are an error, as they
// are in PyTorch (the second forward fails).
Result<BucketPlan> plan_buckets(std::span<const BucketTensor> tensors,
                                std::span<const std::uint32_t> arrival,
                                const BucketOptions& options);

// DDP's view of a network. Its parameter list leaves out what requires no gradient, so its indices
// are not the network's.
struct BucketInputs {
  std::vector<BucketTensor> tensors{};      // registration order
  std::vector<std::uint32_t> arrival{};     // DDP indices in gradient order
  std::vector<std::uint32_t> to_network{};  // DDP index -> network parameter index
};
BucketInputs bucket_inputs(const NeuralNetwork& network);

Result<BucketPlan> plan_buckets(const NeuralNetwork& network, const BucketOptions& options);

}  // namespace railyard::models
