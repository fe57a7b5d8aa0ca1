// DDP's buckets against published and measured lists, and the rules of each PyTorch version.
#include "models/ddp/buckets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/nn/catalogue.h"

using namespace railyard;
using namespace railyard::models;
using namespace railyard::sim::literals;

namespace {

std::string text(const BucketList& buckets) {
  std::vector<std::string> parts;
  for (const Bucket& bucket : buckets)
    parts.push_back(fmt::format("{}", fmt::join(bucket.parameters, " ")));
  return fmt::format("{}", fmt::join(parts, " | "));
}

std::vector<std::int64_t> sizes(const BucketList& buckets) {
  std::vector<std::int64_t> all;
  for (const Bucket& bucket : buckets) all.push_back(bucket.size.raw());
  return all;
}

std::vector<std::uint32_t> reversed(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0U);
  return order;
}

NeuralNetwork model(const char* name) { return build_model(name).value(); }

// Elements per bucket when gradients arrive in exactly the reverse of registration.
std::vector<std::int64_t> reverse_elements(const char* name, Bytes first = 1_MiB,
                                           Bytes cap = 25_MiB) {
  const BucketInputs inputs = bucket_inputs(model(name));
  const std::vector<Bytes> limits{first, cap};
  std::vector<std::int64_t> all =
      sizes(assign_buckets(inputs.tensors, limits, reversed(inputs.tensors.size())));
  for (std::int64_t& size : all) size /= 4;
  return all;
}

using Sizes = std::vector<std::int64_t>;

// Ten tensors of 10 MiB, arriving in reverse.
std::vector<BucketTensor> ten() { return std::vector<BucketTensor>(10, {.elements = 2'621'440}); }

BucketPlan plan_ten(const BucketOptions& options) {
  return plan_buckets(ten(), reversed(10), options).value();
}

std::string refused(const BucketOptions& options) {
  return plan_buckets(ten(), reversed(10), options).error().message;
}

constexpr const char* kWhole = "0 1 2 3 4 5 6 7 8 9";
constexpr const char* kSmallFirst = "9 | 8 7 6 | 5 4 3 | 2 1 0";
constexpr const char* kSmallLastForward = "7 8 9 | 4 5 6 | 1 2 3 | 0";

}  // namespace

TEST_CASE("buckets: ResNet-50 by default is the five all-reduces of a profiler trace") {
  const BucketPlan plan = plan_buckets(model("resnet50"), {}).value();
  CHECK(sizes(plan.of_iteration(1)) == Sizes{102228128});
  CHECK(sizes(plan.of_iteration(2)) == Sizes{8196000, 31502336, 26255360, 26550272, 9724160});
  CHECK(plan.rebuild_before_iteration == 2);
}

TEST_CASE("buckets: ResNet-18 at caps 25 and 35 as in PyTorch issue 48880") {
  const auto rebuilt = [](double cap) {
    return sizes(plan_buckets(model("resnet18"), {.bucket_cap_mb = cap, .version = {1, 8}})
                     .value()
                     .of_iteration(2));
  };
  CHECK(rebuilt(25) == Sizes{2052000, 28852224, 15853824});
  CHECK(rebuilt(35) == Sizes{2052000, 38297600, 6408448});
}

TEST_CASE("buckets: element lists at default limits, reverse registration") {
  CHECK(reverse_elements("resnet50") == Sizes{2049000, 7875584, 6563840, 6637568, 2431040});
  CHECK(reverse_elements("vgg16") == Sizes{4097000, 16781312, 102764544, 7079424, 7079936, 555328});

  Sizes bert{590592};
  bert.insert(bert.end(), 12, 7087872);
  bert.push_back(23837184);
  CHECK(reverse_elements("bert-base") == bert);

  Sizes gpt{2361600};
  gpt.insert(gpt.end(), 11, 7087872);
  gpt.push_back(44111616);
  CHECK(reverse_elements("gpt2") == gpt);
}

TEST_CASE("buckets: counts and ends of the longer lists") {
  struct Row {
    const char* name;
    std::size_t count;
    std::int64_t first, last_low, last_high;
  };
  constexpr std::array rows{Row{"bert-large", 38, 1049600, 32832512, 32832512},
                            Row{"vit-l-16", 38, 1025000, 992256, 992256},
                            Row{"gpt2-medium", 37, 4197376, 56650000, 56750000},
                            Row{"gpt2-large", 109, 6557440, 65550000, 65650000},
                            Row{"gpt2-xl", 145, 10244800, 82050000, 82150000}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Sizes all = reverse_elements(row.name);
    CHECK(all.size() == row.count);
    CHECK(all.front() == row.first);
    CHECK(all.back() >= row.last_low);
    CHECK(all.back() <= row.last_high);
  }
}

TEST_CASE("buckets: a convolution's weight arrives before its bias, which moves VGG boundaries") {
  // Each of the last three buckets differs from reverse registration by one bias.
  const BucketPlan plan = plan_buckets(model("vgg16"), {}).value();
  Sizes all = sizes(plan.of_iteration(2));
  for (std::int64_t& size : all) size /= 4;
  CHECK(all == Sizes{4097000, 16781312, 102764544, 7078912, 7080192, 555584});
}

TEST_CASE("buckets: a tied weight closes the last bucket of every transformer that has one") {
  for (const char* name : {"gpt2", "gpt2-xl", "bert-base-pretraining", "bert-large-pretraining"}) {
    CAPTURE(name);
    const BucketPlan plan = plan_buckets(model(name), {}).value();
    CHECK(plan.of_iteration(2).back().parameters.back() == 0);
  }
}

TEST_CASE("buckets: assignment closes after the tensor that reaches the limit") {
  std::vector<BucketTensor> tensors(5, {.elements = 25});  // 100 B each
  const std::vector<Bytes> exact{200_B};
  CHECK(text(assign_buckets(tensors, exact)) == "0 1 | 2 3 | 4");
  const std::vector<Bytes> odd{150_B, 250_B};
  CHECK(text(assign_buckets(tensors, odd)) == "0 1 | 2 3 4");
  const std::vector<Bytes> zero{0_B};
  CHECK(text(assign_buckets(tensors, zero)) == "0 | 1 | 2 | 3 | 4");
  const std::vector<Bytes> all{kUnlimitedBucket};
  CHECK(text(assign_buckets(tensors, all)) == "0 1 2 3 4");
  CHECK(assign_buckets({}, all).empty());
}

TEST_CASE("buckets: sparse tensors stand alone, each type and device has its own limits") {
  std::vector<BucketTensor> tensors(6, {.elements = 25});
  tensors[1].sparse = true;
  tensors[2].dtype = Dtype::fp16;
  tensors[4].device = 1;
  const std::vector<Bytes> limits{100_B, 200_B};
  // Registered: sorted by the smallest index.
  CHECK(text(assign_buckets(tensors, limits)) == "0 | 1 | 2 | 3 5 | 4");
  // Ordered: as they close, then the open ones, the key seen last first.
  const std::vector<std::uint32_t> order{5, 2, 4, 1, 3, 0};
  CHECK(text(assign_buckets(tensors, limits, order)) == "5 | 4 | 1 | 3 0 | 2");
}

TEST_CASE("buckets: default, current releases") {
  const BucketPlan plan = plan_ten({});
  CHECK(text(plan.of_iteration(1)) == kWhole);
  CHECK(text(plan.of_iteration(2)) == kSmallFirst);
  CHECK(text(plan.of_iteration(3)) == kSmallFirst);
  CHECK(plan.of_iteration(1'000'000) == plan.of_iteration(3));
  CHECK(plan.rebuild_before_iteration == 2);
  CHECK_FALSE(plan.first_iteration_at_end);
  CHECK(plan.of_iteration(2).front().size == 10_MiB);
}

TEST_CASE("buckets: static_graph rebuilds one iteration later and wins over find_unused") {
  for (const bool find_unused : {false, true}) {
    const BucketPlan plan = plan_ten({.find_unused_parameters = find_unused, .static_graph = true});
    CHECK(text(plan.of_iteration(1)) == kWhole);
    CHECK(text(plan.of_iteration(2)) == kWhole);
    CHECK(text(plan.of_iteration(3)) == kSmallFirst);
    CHECK(plan.rebuild_before_iteration == 3);
    CHECK(plan.first_iteration_at_end);
  }
}

TEST_CASE("buckets: find_unused_parameters never rebuilds, the small bucket goes last") {
  const BucketPlan plan = plan_ten({.find_unused_parameters = true});
  for (const int iteration : {1, 2, 3})
    CHECK(text(plan.of_iteration(iteration)) == kSmallLastForward);
  CHECK_FALSE(plan.rebuild_before_iteration.has_value());

  // A given cap has no small bucket since 2.4.
  CHECK(text(plan_ten({.bucket_cap_mb = 25, .find_unused_parameters = true}).of_iteration(1)) ==
        "9 | 6 7 8 | 3 4 5 | 0 1 2");
  CHECK(text(plan_ten({.bucket_cap_mb = 25, .version = {2, 3}, .find_unused_parameters = true})
                 .of_iteration(1)) == kSmallLastForward);
}

TEST_CASE("buckets: a given cap is also the first bucket's since 2.4") {
  const BucketOptions given{.bucket_cap_mb = 25};
  CHECK(text(plan_ten(given).of_iteration(2)) == "9 8 7 | 6 5 4 | 3 2 1 | 0");
  CHECK(text(plan_ten({.bucket_cap_mb = 25, .version = {2, 4}}).of_iteration(2)) ==
        "9 8 7 | 6 5 4 | 3 2 1 | 0");
  CHECK(text(plan_ten({.bucket_cap_mb = 25, .version = {2, 3}}).of_iteration(2)) == kSmallFirst);
}

TEST_CASE("buckets: before 1.12 iteration 1 is bucketed too") {
  const BucketPlan old = plan_ten({.version = {1, 11}});
  CHECK(text(old.of_iteration(1)) == kSmallLastForward);
  CHECK(text(old.of_iteration(2)) == kSmallFirst);
  const BucketPlan fixed = plan_ten({.version = {1, 11}, .static_graph = true});
  CHECK(text(fixed.of_iteration(2)) == kSmallLastForward);
  CHECK(text(fixed.of_iteration(3)) == kSmallFirst);
  CHECK(text(plan_ten({.version = {1, 12}}).of_iteration(1)) == kWhole);
}

TEST_CASE("buckets: the first bucket's size can be set") {
  CHECK(text(plan_ten({.first_bucket_bytes = 15_MiB}).of_iteration(2)) ==
        "9 8 | 7 6 5 | 4 3 2 | 1 0");
  CHECK(text(plan_ten({.find_unused_parameters = true, .first_bucket_bytes = 15_MiB})
                 .of_iteration(1)) == "8 9 | 5 6 7 | 2 3 4 | 0 1");
}

TEST_CASE("buckets: DDP_SET_LAST_BUCKET_CAP puts the small bucket last") {
  CHECK(text(plan_ten({.ddp_set_last_bucket_cap = true}).of_iteration(2)) == kSmallLastForward);
}

TEST_CASE("buckets: a list of caps serves construction and rebuild") {
  const BucketPlan plan = plan_ten({.bucket_cap_mb = 1, .bucket_cap_mb_list = {{10, 30, 50}}});
  CHECK(text(plan.of_iteration(1)) == "9 | 4 5 6 7 8 | 1 2 3 | 0");
  CHECK(text(plan.of_iteration(2)) == "9 | 8 7 6 | 5 4 3 2 1 | 0");
}

TEST_CASE("buckets: unused parameters") {
  const std::vector<std::uint32_t> arrival{9, 8, 6, 5, 4, 3, 1, 0};
  const auto planned = [&](const BucketOptions& options) {
    return plan_buckets(ten(), arrival, options);
  };
  CHECK(planned({}).error().message ==
        "2 parameters receive no gradient (the first is number 2): PyTorch stops in iteration 2 "
        "unless find_unused_parameters or static_graph is set");
  const BucketPlan fixed = planned({.static_graph = true}).value();
  CHECK(fixed.unused == std::vector<std::uint32_t>{2, 7});
  CHECK(text(fixed.of_iteration(3)) == "9 | 8 6 5 | 4 3 1 | 0 2 7");
  CHECK(text(planned({.find_unused_parameters = true}).value().of_iteration(3)) ==
        kSmallLastForward);
}

TEST_CASE("buckets: frozen parameters have no DDP index") {
  NetworkSpec spec{
      .name = "toy",
      .parameters = {{.name = "a", .elements = 3, .requires_grad = false},
                     {.name = "b", .elements = 5},
                     {.name = "c", .elements = 7, .dtype = Dtype::fp16, .sparse = true}},
      .layers = {{.name = "l", .parameters = {"a", "b", "c"}}}};
  const BucketInputs inputs = bucket_inputs(validate(std::move(spec)).value());
  CHECK(inputs.to_network == std::vector<std::uint32_t>{1, 2});
  CHECK(inputs.arrival == std::vector<std::uint32_t>{1, 0});
  REQUIRE(inputs.tensors.size() == 2);
  CHECK(inputs.tensors[0].elements == 5);
  CHECK(inputs.tensors[1].sparse);
}

TEST_CASE("buckets: what cannot be is refused with the reason") {
  CHECK(refused({.bucket_cap_mb = -1}) ==
        "bucket_cap_mb must be a number of MiB from 0 to 8e12, not -1");
  CHECK(refused({.bucket_cap_mb = std::numeric_limits<double>::quiet_NaN()}) ==
        "bucket_cap_mb must be a number of MiB from 0 to 8e12, not nan");
  CHECK(refused({.bucket_cap_mb_list = {{}}}) == "bucket_cap_mb_list is empty");
  CHECK(refused({.bucket_cap_mb_list = {{1, -2}}}) ==
        "bucket_cap_mb_list must be a number of MiB from 0 to 8e12, not -2");
  CHECK(refused({.version = {2, 10}, .bucket_cap_mb_list = {{1}}}) ==
        "bucket_cap_mb_list needs PyTorch 2.11 or later, not 2.10");
  CHECK(refused({.version = {1, 9}, .ddp_set_last_bucket_cap = true}) ==
        "DDP_SET_LAST_BUCKET_CAP needs PyTorch 1.10 or later, not 1.9");
  CHECK(refused({.version = {1, 6}}) ==
        "the model of DDP's buckets needs PyTorch 1.7 or later, not 1.6");
  CHECK(refused({.first_bucket_bytes = sim::bytes(-1)}) ==
        "first_bucket_bytes must not be negative");
  const std::vector<std::uint32_t> twice{1, 1};
  CHECK(plan_buckets(ten(), twice, {}).error().message == "parameter 1 arrives twice");
  const std::vector<std::uint32_t> beyond{10};
  CHECK(plan_buckets(ten(), beyond, {}).error().message ==
        "gradient of parameter 10 arrives, but there are 10 parameters");
  CHECK(plan_buckets(std::vector<BucketTensor>{}, {}, {}).error().message ==
        "no parameter requires a gradient: DDP has nothing to do");
}
