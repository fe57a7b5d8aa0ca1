// What every data-parallel scheme runs on every stream, as text: the steady iteration of a tiny
// network (embedding, three blocks, head) on four ranks, from one optimizer kernel to the next.
// Each line is there for a reason that the framework's source gives; a changed order is a changed
// framework.
//
// Units of FSDP: root {root.p0 of the embedding, root.p1 of the head}, layers.0 to layers.2
// {p0 the weight, p1 the bias}. Bias gradients arrive before weights'.
#include <doctest/doctest.h>

#include "scenarios/run.h"
#include "tests/scenarios/run_helpers.h"
#include "tests/scenarios/tiny_network.h"

namespace railyard::scenarios {
namespace {

void check_golden(const std::string& text, const std::vector<std::string>& sets,
                  std::string_view golden) {
  RunOptions options;
  options.trace_ranks = 1;
  const RunResult result = tests::good_run(tests::full_scenario(text, sets), options);
  CHECK(tests::streams_of(result, tests::streams_in(golden)) == tests::without_comments(golden));
}

// reducer.cpp: bucket_cap_mb 1 closes a bucket with the tensor that passes 2^20 bytes, in arrival
// order: {root.p1, layers.2, layers.1}, {layers.0, root.p0}.
TEST_CASE("golden streams: DDP") {
  check_golden(tests::tiny_job("ddp", "count: 4", "  bucket_cap_mb: 1\n"), {"ddp.iterations=3"}, R"(
communication
  AllReduce bucket           # 0: mark_variable_ready_dense of layers.1.p0 has completed it
  AllReduce bucket           # 1, behind the embedding's gradient: launch order is 0, 1, ...
compute
  cast weights               # autocast: parameters stay fp32
  embed
  cast weights
  layers.0.mlp
  cast weights
  layers.1.mlp
  cast weights
  layers.2.mlp
  cast weights
  head
  dgrad head
  wgrad head
  scale gradient into bucket # a kernel per parameter as its gradient arrives: root.p1
  dgrad layers.2.mlp
  wgrad layers.2.mlp
  scale gradient into bucket # layers.2.p1, then p0
  scale gradient into bucket
  dgrad layers.1.mlp
  wgrad layers.1.mlp
  scale gradient into bucket
  scale gradient into bucket # bucket 0 is launched behind this
  dgrad layers.0.mlp
  wgrad layers.0.mlp
  scale gradient into bucket
  scale gradient into bucket
  dgrad embed
  wgrad embed
  scale gradient into bucket # root.p0: bucket 1
  copy gradient out of bucket # finalize_backward: eight parameters, bucket by bucket
  copy gradient out of bucket
  copy gradient out of bucket
  copy gradient out of bucket
  copy gradient out of bucket
  copy gradient out of bucket
  copy gradient out of bucket
  copy gradient out of bucket
  optimizer                  # behind the last bucket
)");
}

TEST_CASE("golden streams: FSDP1, FULL_SHARD, BACKWARD_PRE") {
  check_golden(tests::tiny_job("fsdp1", "count: 4"), {}, R"(
world
  AllGather root             # _pre_forward_unshard of the root, which is entered first
  AllGather layers.0         # the next ones as the host runs ahead of the GPU,
  AllGather layers.1         #   two without waiting:
  AllGather layers.2         #   _unshard waits for layers.0's free event first (limit_all_gathers)
  AllGather layers.2         # root's _pre_backward_hook prefetches what ran last in forward
  AllGather layers.1         # BACKWARD_PRE: prefetched before layers.2's kernels ...
  ReduceScatter layers.2     # ... and so before its _post_backward_hook
  AllGather layers.0
  ReduceScatter layers.1
  ReduceScatter layers.0     # nothing left to prefetch: the root was not freed after forward
  ReduceScatter root         # the embedding's gradient comes last
pre-unshard
  cast shard root            # _use_low_precision_shard: fp32 to bf16, before each AllGather
  cast shard layers.0
  cast shard layers.1
  cast shard layers.2
  cast shard layers.2
  cast shard layers.1
  cast shard layers.0
post-backward
  pad gradient layers.2      # _get_reduce_scatter_tensors: 261,127 elements do not divide by 4
  predivide layers.2         # _div_if_needed: 4 ranks are 2 before ...
  postdivide layers.2        # ... and 2 behind the ReduceScatter
  cast gradient layers.2     # _post_reduce_grad_callback: back to fp32
  pad gradient layers.1
  predivide layers.1
  postdivide layers.1
  cast gradient layers.1
  pad gradient layers.0
  predivide layers.0
  postdivide layers.0
  cast gradient layers.0
  predivide root             # 513,024 elements divide
  postdivide root
  cast gradient root
compute
  embed                      # on views of the flat parameter: no copy-out
  layers.0.mlp
  layers.1.mlp
  layers.2.mlp
  head
  dgrad head
  wgrad head
  dgrad layers.2.mlp
  wgrad layers.2.mlp
  flatten gradients layers.2 # the backward of the split into views
  dgrad layers.1.mlp
  wgrad layers.1.mlp
  flatten gradients layers.1
  dgrad layers.0.mlp
  wgrad layers.0.mlp
  flatten gradients layers.0
  dgrad embed
  wgrad embed
  flatten gradients root     # when both of the root's views are done
  optimizer                  # _post_backward_final_callback has waited for the post-backward stream
)");
}

// BACKWARD_POST prefetches in _post_backward_hook: behind the unit's kernels, but before its own
// ReduceScatter. The root's hook comes last, so the first block backward enters is not prefetched.
TEST_CASE("golden streams: FSDP1, BACKWARD_POST and no prefetching") {
  check_golden(tests::tiny_job("fsdp1", "count: 4"), {"fsdp1.backward_prefetch=BACKWARD_POST"}, R"(
world
  AllGather root
  AllGather layers.0
  AllGather layers.1
  AllGather layers.2
  AllGather layers.2         # layers.2's own _pre_backward_hook
  AllGather layers.1         # _post_backward_hook of layers.2: first the prefetch,
  ReduceScatter layers.2     #   then the reduction
  AllGather layers.0
  ReduceScatter layers.1
  ReduceScatter layers.0
  ReduceScatter root
)");
  check_golden(tests::tiny_job("fsdp1", "count: 4"), {"fsdp1.backward_prefetch=none"}, R"(
world
  AllGather root
  AllGather layers.0
  AllGather layers.1
  AllGather layers.2
  AllGather layers.2         # each unit's own _pre_backward_hook,
  ReduceScatter layers.2     #   behind the ReduceScatter of the one before
  AllGather layers.1
  ReduceScatter layers.1
  AllGather layers.0
  ReduceScatter layers.0
  ReduceScatter root
)");
}

TEST_CASE("golden streams: FSDP1, HYBRID_SHARD reduces over the replicas on a stream of its own") {
  check_golden(tests::tiny_job(
                   "fsdp1", "count: 8, groups: {shard: {size: 4}, replica: {size: 2, stride: 4}}",
                   "  sharding_strategy: HYBRID_SHARD\n  shard_group: shard\n"
                   "  replica_group: replica\n"),
               {}, R"(
replica
  AllReduce layers.2         # _reduce_grad: behind this unit's ReduceScatter
  AllReduce layers.1
  AllReduce layers.0
  AllReduce root
post-backward
  pad gradient layers.2
  predivide layers.2         # 8 ranks are 4 before ...
  pad gradient layers.1      # (the ReduceScatter of layers.1 does not wait for an AllReduce)
  predivide layers.1
  pad gradient layers.0
  predivide layers.0
  predivide root
all-reduce
  postdivide layers.2        # ... and 2 behind the AllReduce
  cast gradient layers.2
  postdivide layers.1
  cast gradient layers.1
  postdivide layers.0
  cast gradient layers.0
  postdivide root
  cast gradient root
)");
}

TEST_CASE("golden streams: FSDP2") {
  check_golden(tests::tiny_job("fsdp", "count: 4"), {}, R"(
world
  AllGather root             # pre_forward of the root
  AllGather layers.0         # implicit prefetch: the host is ahead
  AllGather layers.1
  AllGather layers.2
  AllGather layers.2         # pre_backward of the root prefetches in post-forward order
  AllGather layers.1         # pre_backward of layers.2
  ReduceScatter layers.2     # post_backward
  AllGather layers.0
  ReduceScatter layers.1
  ReduceScatter layers.0
  ReduceScatter root
copy-in
  copy-in root               # all_gather_copy_in: shards into the AllGather's input
  copy-in layers.0
  copy-in layers.1
  copy-in layers.2
  copy-in layers.2
  copy-in layers.1
  copy-in layers.0
post-reduce
  view-out layers.2          # foreach_reduce: cast of the reduced shard
  view-out layers.1
  view-out layers.0
  view-out root
compute
  copy-out root              # wait_for_unshard: parameters have tensors of their own
  embed
  copy-out layers.0
  layers.0.mlp
  copy-out layers.1
  layers.1.mlp
  copy-out layers.2
  layers.2.mlp
  head                       # the root was not resharded
  dgrad head
  wgrad head
  copy-out layers.2
  dgrad layers.2.mlp
  wgrad layers.2.mlp
  reduce copy-in layers.2    # foreach_reduce: gradients into the ReduceScatter's input
  copy-out layers.1
  dgrad layers.1.mlp
  wgrad layers.1.mlp
  reduce copy-in layers.1    # behind layers.2's ReduceScatter: one is outstanding
  copy-out layers.0
  dgrad layers.0.mlp
  wgrad layers.0.mlp
  reduce copy-in layers.0
  dgrad embed
  wgrad embed
  reduce copy-in root
  optimizer
)");
}

// Stage 1 without overlap_comm: reduce_gradients() walks the parameters in registration order when
// backward is over, and everything is on the compute stream. Buckets: {root.p0}, {root.p1,
// layers.0}, {layers.1}, {layers.2}.
TEST_CASE("golden streams: ZeRO-1") {
  check_golden(tests::tiny_job("zero", "count: 4", "  stage: 1\n  reduce_bucket_size: 270000\n"),
               {},
               R"(
world
  AllGather parameters       # the step before
  AllReduce bucket 0
  AllReduce bucket 1
  AllReduce bucket 2
  AllReduce bucket 3
  AllReduce gradient norm
compute
  cast parameters            # the step before
  embed
  layers.0.mlp
  layers.1.mlp
  layers.2.mlp
  head
  dgrad head
  wgrad head
  dgrad layers.2.mlp
  wgrad layers.2.mlp
  dgrad layers.1.mlp
  wgrad layers.1.mlp
  dgrad layers.0.mlp
  wgrad layers.0.mlp
  dgrad embed
  wgrad embed
  divide bucket 0            # root.p0, larger than a bucket and reduced where it lies
  flatten bucket 0
  unflatten bucket 0         # behind the AllReduce
  to bucket root.p1
  to bucket layers.0.p0
  to bucket layers.0.p1
  divide bucket 1            # layers.1.p0 would overflow it
  flatten bucket 1
  unflatten bucket 1
  to bucket layers.1.p0
  to bucket layers.1.p1
  divide bucket 2
  flatten bucket 2
  unflatten bucket 2
  to bucket layers.2.p0
  to bucket layers.2.p1
  divide bucket 3            # independent_gradient_partition_epilogue
  flatten bucket 3
  unflatten bucket 3
  gradient norm
  cast gradients
  unscale gradients
  optimizer
)");
}

// reduce_bucket_size 270,000: {root.p1, layers.2.p1, layers.2.p0, layers.1.p1}, {layers.1.p0,
// layers.0.p1}, {layers.0.p0}, and root.p0, which is larger than a bucket.
TEST_CASE("golden streams: ZeRO-2 with overlap_comm") {
  check_golden(tests::tiny_job("zero", "count: 4",
                               "  stage: 2\n  overlap_comm: true\n  reduce_bucket_size: 270000\n"),
               {}, R"(
world
  AllGather parameters       # the step before: all_gather_dp_groups
  AllReduce bucket 0         # reduce_ipg_grads, as layers.1.p0 would overflow it
  AllReduce bucket 1         # as layers.0.p0 would
  AllReduce bucket 2         # as root.p0 would
  AllReduce bucket 3         # independent_gradient_partition_epilogue
  AllReduce gradient norm    # scaled_global_norm
reduction
  divide bucket 0            # average_tensor
  flatten bucket 0           # allreduce_and_scatter: an AllReduce all the same
  unflatten bucket 0         # the rank's own part
  to partition bucket 0      # copy_grads_in_partition
  divide bucket 1
  flatten bucket 1
  unflatten bucket 1
  to partition bucket 1
  divide bucket 2
  flatten bucket 2
  unflatten bucket 2
  to partition bucket 2
  divide bucket 3
  flatten bucket 3
  unflatten bucket 3
  to partition bucket 3
compute
  cast parameters            # the step before
  embed
  layers.0.mlp
  layers.1.mlp
  layers.2.mlp
  head
  dgrad head
  wgrad head
  to bucket root.p1          # contiguous_gradients: one copy per gradient, as it arrives
  dgrad layers.2.mlp
  wgrad layers.2.mlp
  to bucket layers.2.p1
  to bucket layers.2.p0
  dgrad layers.1.mlp
  wgrad layers.1.mlp
  to bucket layers.1.p1
  to bucket layers.1.p0      # into the second buffer, while bucket 0 is reduced
  dgrad layers.0.mlp
  wgrad layers.0.mlp
  to bucket layers.0.p1
  to bucket layers.0.p0      # average_tensor has made this stream wait for bucket 0's reduction
  dgrad embed
  wgrad embed                # root.p0 is reduced where it lies
  gradient norm              # the host has waited for the GPU before
  cast gradients
  unscale gradients
  optimizer
)");
}

// Parameters up to 1000 elements are persistent. Prefetching stops at the first parameter that
// reaches 200,000 elements: one weight at a time. Nothing is kept for its reuse (distance 0) but
// layers.2.p0.
TEST_CASE("golden streams: ZeRO-3") {
  check_golden(
      tests::tiny_job("zero", "count: 4",
                      "  stage: 3\n  reduce_bucket_size: 270000\n"
                      "  stage3_prefetch_bucket_size: 200000\n  stage3_max_reuse_distance: 0\n"
                      "  stage3_param_persistence_threshold: 1000\n"),
      {}, R"(
world
  AllGather root.p1          # the step before: _post_step gathers what is persistent, one by one
  AllGather layers.0.p1
  AllGather layers.1.p1
  AllGather layers.2.p1
  AllGather root.p0          # fetch_sub_module(embed): nothing has prefetched it
  AllGather layers.0.p0      # prefetched behind that, before embed's kernels
  AllGather layers.1.p0      # fetch_sub_module(layers.0)
  AllGather layers.2.p0      # fetch_sub_module(layers.1)
  AllGather layers.1.p0      # of layers.2: the queue has turned; layers.2.p0 is there, is skipped, and
                             #   therefore not released behind forward
  AllGather layers.0.p0      # of the head
  AllGather root.p0          # of the head's backward: backward has all it needs before it begins
  ReduceScatter bucket 0     # as layers.1.p0 would overflow it
  ReduceScatter bucket 1
  ReduceScatter bucket 2
  ReduceScatter bucket 3     # independent_gradient_partition_epilogue
  AllReduce gradient norm
reduce
  to bucket root.p1          # __add_grad_to_ipg_bucket copies on this stream
  to bucket layers.2.p1
  to bucket layers.2.p0
  to bucket layers.1.p1
  interleave bucket 0        # reduce_scatter_coalesced: parts of all parameters by owner
  divide bucket 0
  to partition bucket 0      # partition_grads
  to bucket layers.1.p0
  to bucket layers.0.p1
  interleave bucket 1
  divide bucket 1
  to partition bucket 1
  to bucket layers.0.p0
  divide bucket 2            # one tensor that divides by 4: nothing to interleave
  to partition bucket 2
  divide bucket 3            # root.p0 is larger than a bucket: no copy
  to partition bucket 3
all-gather
compute
  cast parameters            # the step before
  embed                      # single parameters are gathered in place: no copy-out
  layers.0.mlp
  layers.1.mlp
  layers.2.mlp
  head
  dgrad head
  wgrad head
  dgrad layers.2.mlp
  wgrad layers.2.mlp
  dgrad layers.1.mlp
  wgrad layers.1.mlp
  dgrad layers.0.mlp
  wgrad layers.0.mlp
  dgrad embed
  wgrad embed
  gradient norm              # the host has waited for the reduce stream before
  cast gradients
  unscale gradients
  optimizer
)");
}

}  // namespace
}  // namespace railyard::scenarios
