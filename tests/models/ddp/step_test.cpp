// Golden timelines of a network of four layers a, b, c, d on two ranks, in exact microseconds from
// the end of the previous iteration. Everything costs what toy_job.h says: forward and dgrad 20,
// wgrad 10, a copy of one gradient (1 MB) 2, the optimizer 4 x 1 MB x 5 = 20; the gap between
// kernels 1; a collective its start 1 + 5 + 10 per MB; per iteration the host needs 20 launches x 1
// + 4 hooks x 1 + 3 collectives x 3 = 33, so it is ahead of the GPU. Layer a runs first and has no
// dgrad.
//
// Sources: torch/csrc/distributed/c10d/reducer.cpp and torch/nn/parallel/distributed.py, by
// function; the behaviour is the same in 1.13 and 2.x.
#include "models/ddp/step.h"

#include <doctest/doctest.h>

#include "tests/models/ddp/toy_job.h"

namespace railyard::test {
namespace {

using models::DdpCalls;
using sim::microseconds;

const std::vector<ToyLayer> kFour{{"a", 250'000, 20, 0}, {"b"}, {"c"}, {"d"}};

// Reducer::initialize_buckets with one unlimited limit: iteration 1 has one bucket, so nothing
// overlaps. The host's first launch ends at 1 and the kernel starts launch_latency later, at 3.
TEST_CASE("iteration 1: one bucket, reduced after the last gradient") {
  const ToyJob job(toy_network(kFour), toy_options());
  REQUIRE(job.finished());
  CHECK(job.text(1) ==
        "0 a 3-23\n0 b 24-44\n0 c 45-65\n0 d 66-86\n"
        // autograd: last layer first, dgrad then wgrad, then the hook's copy of that parameter
        "0 dgrad d 87-107\n0 wgrad d 108-118\n0 scale gradient into bucket 119-121\n"
        "0 dgrad c 122-142\n0 wgrad c 143-153\n0 scale gradient into bucket 154-156\n"
        "0 dgrad b 157-177\n0 wgrad b 178-188\n0 scale gradient into bucket 189-191\n"
        "0 wgrad a 192-202\n0 scale gradient into bucket 203-205\n"
        "1 AllReduce bucket 205-251\n"  // 1 + 5 + 40
        // finalize_bucket_dense: one copy per parameter, then the optimizer behind them
        "0 copy gradient out of bucket 251-253\n0 copy gradient out of bucket 254-256\n"
        "0 copy gradient out of bucket 257-259\n0 copy gradient out of bucket 260-262\n"
        "0 optimizer 263-283\n");
}

// Reducer::rebuild_buckets, called by the forward of iteration 2: sync_bucket_indices broadcasts
// (4 + 1) x 4 B and, when that is on the host, 3 x 4 B. The first waits for the compute stream (0)
// and ends at 1 + 5.0002; the host launches the second 3 later and it starts 2 after that, 11.0002,
// ending 6.00012 later; the host then launches layer a at 18.00032, which starts at 20.00032. The
// rest is the steady iteration, 19.00032 later.
TEST_CASE("iteration 2: the rebuild stops the host twice, then the buckets are the steady ones") {
  const ToyJob job(toy_network(kFour), toy_options());
  const auto spans = job.iteration(2);
  const auto steady = job.iteration(3);
  REQUIRE(spans.size() == steady.size() + 2);
  CHECK(to_string(spans[0]) == "1 Broadcast bucket layout 0-6.0002");
  CHECK(to_string(spans[1]) == "1 Broadcast bucket layout 11.0002-17.00032");
  for (std::size_t i = 0; i < steady.size(); ++i) {
    CHECK(spans[i + 2].name == steady[i].name);
    CHECK(spans[i + 2].start - steady[i].start == sim::picoseconds(19'000'320));
    CHECK(spans[i + 2].end - steady[i].end == sim::picoseconds(19'000'320));
  }
  CHECK(job.step(2) == 273'000'320);
}

// Rebuilt in arrival order d, c, b, a with limits 1 MB and 1.5 MiB: {d}, {c, b}, {a}. The small
// bucket is the first launched. Per layer 35 or (a) 14 of backward and its copy, gaps included.
const char* const kSteady =
    "0 a 1-21\n0 b 22-42\n0 c 43-63\n0 d 64-84\n"
    "0 dgrad d 85-105\n0 wgrad d 106-116\n0 scale gradient into bucket 117-119\n"
    "1 AllReduce bucket 119-135\n"  // {d} is complete: 1 + 5 + 10, beside the backward of c
    "0 dgrad c 120-140\n0 wgrad c 141-151\n0 scale gradient into bucket 152-154\n"
    "0 dgrad b 155-175\n0 wgrad b 176-186\n0 scale gradient into bucket 187-189\n"
    "1 AllReduce bucket 189-215\n"  // {c, b}: 1 + 5 + 20
    "0 wgrad a 190-200\n0 scale gradient into bucket 201-203\n"
    "0 copy gradient out of bucket 204-206\n"  // {d} ended long ago, but its copy sits behind
                                               // all of backward on the compute stream
    "0 copy gradient out of bucket 215-217\n"  // when {c, b} has ended
    "1 AllReduce bucket 215-231\n"  // {a} was ready at 203: one stream, first in first out
    "0 copy gradient out of bucket 218-220\n"
    "0 copy gradient out of bucket 231-233\n"
    "0 optimizer 234-254\n";  // waits for the last bucket, whatever it updates first

TEST_CASE("the steady iteration, on both ranks, and from then on always the same") {
  const ToyJob job(toy_network(kFour), toy_options());
  CHECK(job.text(3, 0) == kSteady);
  CHECK(job.text(3, 1) == kSteady);
  CHECK(job.text(4, 0) == kSteady);
  CHECK(job.step(3) == 254'000'000);
  CHECK(job.step(4) == 254'000'000);
}

TEST_CASE("marks: where the report finds the buckets") {
  const ToyJob job(toy_network(kFour), toy_options());
  const auto& marks = job.rank(0).marks;
  REQUIRE(marks.size() == 4);
  CHECK(marks[0].bucket_calls[0] == 0);
  CHECK(marks[1].bucket_calls[0] == 3);  // one bucket and two broadcasts before
  CHECK(marks[2].bucket_calls[0] == 6);
  CHECK(marks[2].bucket_ready.size() == 3);
  sim::Gpu& gpu = job.rank(0).host->gpu();
  const sim::Time origin = job.end_of(2);
  CHECK(gpu.fire_time(marks[2].forward_end) - origin == microseconds(84));
  CHECK(gpu.fire_time(marks[2].bucket_ready[1]) - origin == microseconds(189));
  CHECK(gpu.fire_time(marks[2].backward_end) - origin == microseconds(203));
}

// gradient_as_bucket_view: the gradient is the bucket. The scaling kernel stays, the four copies
// back go, and the optimizer starts when the last AllReduce ends.
TEST_CASE("bucket views save the copy back and nothing else") {
  ToyOptions options = toy_options();
  options.ddp.buckets.gradient_as_bucket_view = true;
  const ToyJob job(toy_network(kFour), options);
  const std::string text = job.text(3);
  CHECK(text.find("copy gradient out") == std::string::npos);
  CHECK(text.find("0 scale gradient into bucket 201-203\n") != std::string::npos);
  CHECK(text.ends_with("1 AllReduce bucket 215-231\n0 optimizer 231-251\n"));
}

// Reducer::mark_bucket_ready: "Buckets are reduced in sequence. Ignore this bucket if it's not its
// turn." With find_unused_parameters the buckets stay those of construction: by registration
// a, b, c, d with limits 1 MB, 1.5 MiB, reversed: {d}, {b, c}, {a}. Here d RUNS first, so its
// gradient comes last: {b, c} is complete at 154, {a} at 189, and all three are launched at 203.
// The bitmap (4 x 4 B: 1 + 5.00016) is behind them, and finalize_backward waits for it.
TEST_CASE("a bucket that is ready early waits for those before it") {
  ToyOptions options = toy_options();
  options.ddp.buckets.find_unused_parameters = true;
  const std::vector<ToyLayer> layers{{"a"}, {"b"}, {"c"}, {"d", 250'000, 20, 0}};
  const ToyJob job(toy_network(layers, {3, 0, 1, 2}), options);
  CHECK(job.text(3) ==
        "0 d 1-21\n0 a 22-42\n0 b 43-63\n0 c 64-84\n"
        "0 dgrad c 85-105\n0 wgrad c 106-116\n0 scale gradient into bucket 117-119\n"
        "0 dgrad b 120-140\n0 wgrad b 141-151\n0 scale gradient into bucket 152-154\n"
        "0 dgrad a 155-175\n0 wgrad a 176-186\n0 scale gradient into bucket 187-189\n"
        "0 wgrad d 190-200\n0 scale gradient into bucket 201-203\n"
        "1 AllReduce bucket 203-219\n"
        "0 copy gradient out of bucket 219-221\n1 AllReduce bucket 219-245\n"
        "0 copy gradient out of bucket 245-247\n1 AllReduce bucket 245-261\n"
        "0 copy gradient out of bucket 248-250\n"
        "0 copy gradient out of bucket 261-263\n1 AllReduce used parameters 261-267.00016\n"
        "0 optimizer 267.00016-287.00016\n");
}

// As above with the layers in their usual order: no rebuild, the small bucket {a} LAST, the bitmap
// after it in every iteration.
TEST_CASE("find_unused_parameters: no rebuild, small bucket last, a bitmap in every iteration") {
  ToyOptions options = toy_options();
  options.ddp.buckets.find_unused_parameters = true;
  const ToyJob job(toy_network(kFour), options);
  for (const std::int64_t iteration : {2, 3}) {
    const std::string text = job.text(iteration);
    CHECK(text.find("bucket layout") == std::string::npos);
    CHECK(text.find("1 AllReduce bucket 119-135\n") != std::string::npos);  // {d}
    CHECK(text.find("1 AllReduce bucket 189-215\n") != std::string::npos);  // {b, c}
    CHECK(text.find("1 AllReduce bucket 215-231\n") != std::string::npos);  // {a}
    CHECK(
        text.ends_with("0 copy gradient out of bucket 231-233\n"
                       "1 AllReduce used parameters 231-237.00016\n"
                       "0 optimizer 237.00016-257.00016\n"));
  }
  CHECK(job.program().plan.of_iteration(3).back().parameters == std::vector<std::uint32_t>{0});
}

// finalize_bucket_dense: at the first parameter that this rank did not use the host waits for the
// bitmap (a blocking copy). e is registered last and never run: buckets {d, e}, {b, c}, {a}; e is
// marked ready by the first hook, so {d, e} is launched with d (1 + 5 + 20). The bitmap of 5 x 4 B
// ends at 237.0002; only then the host launches the copies of the other buckets: 1 + 2 later.
TEST_CASE("a parameter that is not used makes the host wait for the bitmap") {
  ToyOptions options = toy_options();
  options.ddp.buckets.find_unused_parameters = true;
  std::vector<ToyLayer> layers = kFour;
  layers.push_back({"e"});
  const ToyJob job(toy_network(layers, {0, 1, 2, 3}), options);
  REQUIRE(job.program().unused == std::vector<std::uint32_t>{4});
  const std::string text = job.text(1);
  // Iteration 1 starts 2 later than a steady one: the first kernel starts at 3.
  CHECK(text.find("1 AllReduce bucket 121-147\n") != std::string::npos);
  CHECK(text.find("0 copy gradient out of bucket 206-208\n"            // d
                  "1 AllReduce bucket 217-233\n"                       // {a}
                  "1 AllReduce used parameters 233-239.0002\n"         //
                  "0 copy gradient out of bucket 242.0002-244.0002\n"  // b
                  "0 copy gradient out of bucket 245.0002-247.0002\n"  // c
                  "0 copy gradient out of bucket 248.0002-250.0002\n"  // a
                  "0 optimizer 251.0002-271.0002\n") != std::string::npos);
}

// Reducer::delay_all_reduce: in iteration 1 of a static graph the hooks only count. At the end the
// bitmap goes out first, then all gradients are copied by index, then all buckets are reduced.
TEST_CASE("static_graph: iteration 1 reduces at the end, the rebuild is before iteration 3") {
  ToyOptions options = toy_options();
  options.ddp.buckets.static_graph = true;
  const ToyJob job(toy_network(kFour), options);
  CHECK(job.text(1) ==
        "0 a 3-23\n0 b 24-44\n0 c 45-65\n0 d 66-86\n"
        "0 dgrad d 87-107\n0 wgrad d 108-118\n0 dgrad c 119-139\n0 wgrad c 140-150\n"
        "0 dgrad b 151-171\n0 wgrad b 172-182\n0 wgrad a 183-193\n"
        "1 AllReduce used parameters 193-199.00016\n"
        "0 scale gradient into bucket 194-196\n0 scale gradient into bucket 197-199\n"
        "0 scale gradient into bucket 200-202\n0 scale gradient into bucket 203-205\n"
        "1 AllReduce bucket 205-251\n"
        "0 copy gradient out of bucket 251-253\n0 copy gradient out of bucket 254-256\n"
        "0 copy gradient out of bucket 257-259\n0 copy gradient out of bucket 260-262\n"
        "0 optimizer 263-283\n");
  // Iteration 2: one bucket still, with copies in the hooks: all of it 2 earlier than iteration 1
  // of the default, whose first kernel had to wait for the host.
  CHECK(job.text(2).find("1 AllReduce bucket 203-249\n") != std::string::npos);
  CHECK(job.text(2).find("used parameters") == std::string::npos);
  CHECK(job.step(2) == 281'000'000);
  CHECK(job.step(3) == 273'000'320);
  CHECK(job.text(4) == kSteady);
}

// DistributedDataParallel._pre_forward: buffers are broadcast before the forward, which waits. Of
// 1000 FP32 and 100 int64 elements: flatten 8,000 B of traffic = 0.008, broadcast 1 + 5 + 0.04 for
// 4,000 B. The second is flattened, 0.0016, a gap after the first and broadcast behind it, 1 + 5 +
// 0.008 for 800 B: two are in flight. Each is copied back when it is over, 0.008 and 0.0016; a gap,
// and the first layer.
TEST_CASE("buffers: the forward waits for their broadcasts") {
  const models::Buffers buffers{.fp32_elements = 1'000, .int64_elements = 100};
  ToyOptions options = toy_options();
  const ToyJob job(toy_network(kFour, {}, buffers), options);
  CHECK(
      job.text(3).starts_with("0 flatten buffers 1-1.008\n"
                              "1 Broadcast buffers 1.008-7.048\n"
                              "0 flatten buffers 2.008-2.0096\n"
                              "0 flatten buffers 7.048-7.056\n"
                              "1 Broadcast buffers 7.048-13.056\n"
                              "0 flatten buffers 13.056-13.0576\n"
                              "0 a 14.0576-34.0576\n"));
  CHECK(job.step(3) == 254'000'000 + 13'057'600);
  CHECK(job.text(1).starts_with("0 flatten buffers 3-3.008\n"));  // in the first forward, too
  options.ddp.broadcast_buffers = false;
  const ToyJob without(toy_network(kFour, {}, buffers), options);
  CHECK(without.text(3) == kSteady);
}

// The host needs 30 per launch, more than any kernel takes: 20 x 30 + 4 hooks + 3 x 3 = 613 for a
// step, whatever the collectives cost; without the copies back 4 launches less.
TEST_CASE("when the host is the bottleneck, neither the GPU nor the network matters") {
  ToyOptions options = toy_options();
  for (sim::HostParameters& host : options.hosts) host.op_launch = microseconds(30);
  const ToyJob job(toy_network(kFour), options);
  CHECK(job.step(3) == 613'000'000);
  options.collective_time = microseconds(1);
  const ToyJob fast(toy_network(kFour), options);
  CHECK(fast.step(3) == 613'000'000);
  options.ddp.buckets.gradient_as_bucket_view = true;
  const ToyJob views(toy_network(kFour), options);
  CHECK(views.step(3) == 493'000'000);
  for (const ToySpan& span : views.iteration(3))  // launch call to start: 2, never less
    CHECK(span.start >= microseconds(2));
}

// Rank 1's kernels lie 3 apart instead of 1. It enters bucket {d} at 134 of its own time, which
// began 2 after rank 0's (its optimizer starts 2 later): 136. Rank 0 is there at 120 and waits.
TEST_CASE("a slow rank: the transfer starts when it enters, all leave together") {
  ToyOptions options = toy_options();
  options.gaps = {microseconds(1), microseconds(3)};
  const ToyJob job(toy_network(kFour), options);
  CHECK(job.text(3, 0).find("1 AllReduce bucket 119-151\n") != std::string::npos);
  CHECK(job.text(3, 1).find("1 AllReduce bucket 133-149\n") != std::string::npos);
  CHECK(job.step(3, 0) == job.step(3, 1));
  for (const sim::CallRecord& record : job.runner().records()) {
    if (job.runner().schedule(record.plan).call.collective != sim::Collective::all_reduce) continue;
    CHECK(record.begin >= std::max(record.enter[0], record.enter[1]));
    CHECK(record.end[0] == record.end[1]);
  }
}

TEST_CASE("one rank alone still scales, reduces and copies back") {
  ToyOptions options = toy_options();
  options.hosts.pop_back();
  const ToyJob job(toy_network(kFour), options);
  CHECK(job.text(3) == kSteady);
}

// 250 MiB = 262,144,000 B = 65,536,000 FP32 elements a piece. The third piece is flattened when the
// first has been copied back.
TEST_CASE("buffers: pieces of 250 MiB, two of them in flight") {
  const models::Buffers buffers{.fp32_elements = 2 * 65'536'000 + 1};
  ToyOptions options = toy_options();
  const models::NeuralNetwork network = toy_network(kFour, {}, buffers);
  const DdpCalls calls = models::ddp_calls(
      network, models::plan_buckets(network, options.ddp.buckets).value(), options.ddp, 3);
  REQUIRE(calls.buffers.size() == 3);
  CHECK(calls.buffers[0].size == sim::bytes(262'144'000));
  CHECK(calls.buffers[1].size == sim::bytes(262'144'000));
  CHECK(calls.buffers[2].size == sim::bytes(4));
  std::vector<ToySpan> copies;
  std::vector<ToySpan> broadcasts;
  for (const ToySpan& span : ToyJob(network, options).iteration(3)) {
    if (span.name == "flatten buffers") copies.push_back(span);
    if (span.name == "Broadcast buffers") broadcasts.push_back(span);
  }
  REQUIRE(copies.size() == 6);  // 0, 1, 0 back, 2, 1 back, 2 back
  REQUIRE(broadcasts.size() == 3);
  CHECK(copies[1].start < broadcasts[0].end);
  CHECK(copies[2].start == broadcasts[0].end);
  CHECK(copies[3].start > copies[2].end);
  CHECK(copies[3].end < broadcasts[1].end);
  CHECK(copies[4].start == broadcasts[1].end);
  CHECK(copies[5].start >= broadcasts[2].end);
}

// Iteration 4 is like all that follow it, and its collectives are planned once.
TEST_CASE("iterations: as many as are asked for, of which four may differ") {
  ToyOptions options = toy_options();
  options.ddp.iterations = 9;
  const ToyJob job(toy_network(kFour), options);
  CHECK(job.text(9) == kSteady);
  CHECK(job.text(9) == job.text(5));
}

// All ranks' calls: sizes and element sizes.
TEST_CASE("what goes on the wire in each iteration") {
  const models::Buffers buffers{.fp32_elements = 1'000, .int64_elements = 100};
  const models::NeuralNetwork network = toy_network(kFour, {}, buffers);
  models::DdpOptions options = toy_options().ddp;
  const auto calls = [&](std::int64_t iteration) {
    return models::ddp_calls(network, models::plan_buckets(network, options.buckets).value(),
                             options, iteration);
  };
  CHECK(calls(1).rebuild.empty());
  const DdpCalls second = calls(2);
  REQUIRE(second.rebuild.size() == 2);
  CHECK(second.rebuild[0].collective == sim::Collective::broadcast);
  CHECK(second.rebuild[0].size == sim::bytes(20));  // 4 indices and their number, int32
  CHECK(second.rebuild[1].size == sim::bytes(12));  // 3 bucket sizes
  REQUIRE(second.buffers.size() == 2);
  CHECK(second.buffers[0].size == sim::bytes(4'000));
  CHECK(second.buffers[1].size == sim::bytes(800));
  CHECK(second.buffers[1].element_size == 8);
  REQUIRE(second.buckets.size() == 3);
  CHECK(second.buckets[1][0].size == sim::bytes(2'000'000));
  CHECK(second.unused.empty());
  CHECK(calls(3).rebuild.empty());

  options.buckets.static_graph = true;
  CHECK(calls(1).unused.size() == 1);
  CHECK(calls(2).unused.empty());
  CHECK(calls(2).rebuild.empty());
  CHECK(calls(3).rebuild.size() == 2);
  options.buckets.find_unused_parameters = true;  // static_graph wins
  CHECK(calls(2).unused.empty());
  options.buckets.static_graph = false;
  CHECK(calls(2).unused.size() == 1);
  CHECK(calls(2).unused[0].size == sim::bytes(16));
  CHECK(calls(2).rebuild.empty());
}

}  // namespace
}  // namespace railyard::test
