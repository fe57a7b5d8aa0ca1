// DDP's buckets against PyTorch itself: its assignment function on meta tensors, and two real Gloo
// processes training toy models (tests/oracle/*.py).
#include <doctest/doctest.h>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "models/ddp/buckets.h"
#include "models/nn/builder.h"
#include "models/nn/catalogue.h"
#include "tests/paths.h"
#include "tests/skip.h"

using namespace railyard;
using namespace railyard::models;

namespace {

namespace fs = std::filesystem;

constexpr const char* kNoTorch = "no python3 with torch was found when the build was configured";

bool has_torch() { return std::string(RAILYARD_TORCH_PYTHON) != ""; }

// A directory of its own, removed at the end of the test case.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / fmt::format("railyard_oracle_{}", getpid())) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

int run_script(const std::string& script, const std::string& arguments) {
  return std::system(fmt::format("'{}' '{}/tests/oracle/{}' {}", RAILYARD_TORCH_PYTHON,
                                 RAILYARD_SOURCE_DIR, script, arguments)
                         .c_str());
}

using Lists = std::vector<std::vector<std::uint32_t>>;

std::vector<std::uint32_t> parse_list(const std::string& text) {
  std::vector<std::uint32_t> list;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');)
    list.push_back(static_cast<std::uint32_t>(std::stoul(item)));
  return list;
}

Lists parse_lists(const std::string& text) {
  Lists lists;
  std::istringstream stream(text);
  for (std::string item; stream >> item;) lists.push_back(parse_list(item));
  return lists;
}

Lists indices(const BucketList& buckets) {
  Lists lists;
  for (const Bucket& bucket : buckets) lists.push_back(bucket.parameters);
  return lists;
}

// One question to both sides, and our answer.
struct Case {
  std::string name;
  Lists ours;
  std::size_t loose = 0;  // so many last buckets may come in any order (hash map in PyTorch)
};

class CaseWriter {
 public:
  explicit CaseWriter(const std::string& path) : file_(path) {}

  void tensors(const std::vector<BucketTensor>& tensors) {
    file_ << "tensors " << tensors.size() << '\n';
    for (const BucketTensor& tensor : tensors)
      file_ << tensor.elements << ' ' << sim::to_text(tensor.dtype) << ' ' << tensor.sparse << '\n';
    tensors_ = tensors;
  }

  void ask(const std::string& name, const std::vector<Bytes>& limits,
           const std::vector<std::uint32_t>& order) {
    std::vector<std::int64_t> raw;
    for (const Bytes limit : limits) raw.push_back(limit.raw());
    file_ << fmt::format("case {} {}\n", fmt::join(raw, ","), fmt::join(order, ","));
    cases_.push_back({.name = name,
                      .ours = indices(assign_buckets(tensors_, limits, order)),
                      .loose = order.empty() ? 0 : several_types()});
  }

  [[nodiscard]] std::vector<Case> finish() {
    file_.close();
    return std::move(cases_);
  }

 private:
  // The number of element types when there are several: each may leave one bucket open.
  [[nodiscard]] std::size_t several_types() const {
    std::set<Dtype> types;
    for (const BucketTensor& tensor : tensors_) types.insert(tensor.dtype);
    return types.size() > 1 ? types.size() : 0;
  }

  std::ofstream file_;
  std::vector<BucketTensor> tensors_;
  std::vector<Case> cases_;
};

void sort_tail(Lists& lists, std::size_t count) {
  std::sort(lists.end() - static_cast<std::ptrdiff_t>(std::min(count, lists.size())), lists.end());
}

struct Tally {
  std::size_t same_order = 0;
  std::size_t same_set = 0;
};

Tally compare(const std::vector<Case>& cases, const std::string& answers) {
  std::ifstream file(answers);
  Tally tally;
  for (const Case& one : cases) {
    CAPTURE(one.name);
    std::string line;
    REQUIRE(std::getline(file, line));
    Lists theirs = parse_lists(line);
    Lists ours = one.ours;
    if (theirs == ours) ++tally.same_order;
    sort_tail(theirs, one.loose);
    sort_tail(ours, one.loose);
    REQUIRE(theirs == ours);
    ++tally.same_set;
  }
  return tally;
}

Tally ask_torch(const std::vector<Case>& cases, const Scratch& scratch) {
  REQUIRE(run_script("assign_buckets.py", fmt::format("'{}' '{}'", scratch.file("cases"),
                                                      scratch.file("answers"))) == 0);
  return compare(cases, scratch.file("answers"));
}

std::vector<std::uint32_t> reversed(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.rbegin(), order.rend(), 0U);
  return order;
}

// Modulo rather than a distribution: the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }
  std::vector<std::uint32_t> permutation(std::size_t count) {
    std::vector<std::uint32_t> order = reversed(count);
    for (std::uint32_t i = static_cast<std::uint32_t>(count); i > 1; --i)
      std::swap(order[i - 1], order[below(i)]);
    return order;
  }

 private:
  std::mt19937 engine_;
};

std::vector<BucketTensor> random_tensors(Random& random) {
  constexpr std::array kTypes{Dtype::fp32, Dtype::fp16,  Dtype::bf16,
                              Dtype::fp64, Dtype::int64, Dtype::int8};
  const std::uint32_t types = 1 + random.below(kTypes.size());
  std::vector<BucketTensor> tensors(1 + random.below(60));
  for (BucketTensor& tensor : tensors) {
    tensor.elements = 1 + random.below(1U << random.below(23));
    tensor.dtype = kTypes[random.below(types)];
    tensor.sparse = random.below(10) == 0;
  }
  return tensors;
}

std::vector<Bytes> random_limits(Random& random) {
  std::vector<Bytes> limits(1 + random.below(3));
  for (Bytes& limit : limits) limit = sim::bytes(random.below(1U << (1 + random.below(25))));
  return limits;
}

// What the toy run reports of one model.
struct Measured {
  std::vector<std::int64_t> initial;
  int rebuilt_before = 0;
  std::vector<std::int64_t> rebuilt;
  Lists rebuilt_indices;
  std::vector<std::uint32_t> arrival;
};

template <typename T>
std::vector<T> numbers(std::istringstream& stream) {
  std::vector<T> all;
  for (T number{}; stream >> number;) all.push_back(number);
  return all;
}

std::map<std::string, Measured> read_measured(const std::string& path) {
  std::map<std::string, Measured> all;
  std::ifstream file(path);
  std::string name;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::string key;
    stream >> key;
    if (key == "model") stream >> name;
    Measured& measured = all[name];
    if (key == "initial") measured.initial = numbers<std::int64_t>(stream);
    if (key == "rebuilt_before") stream >> measured.rebuilt_before;
    if (key == "rebuilt") measured.rebuilt = numbers<std::int64_t>(stream);
    if (key == "indices") measured.rebuilt_indices = parse_lists(line.substr(key.size()));
    if (key == "arrival") measured.arrival = numbers<std::uint32_t>(stream);
  }
  return all;
}

// The twins of the models in tests/oracle/ddp_buckets.py.
NetworkSpec tied() {
  NetworkBuilder net("tied", Dtype::fp32);
  net.embedding("embed", 13, 8);
  net.linear("fc1", 8, 24);
  net.layer_norm("norm", 24);
  net.linear("fc2", 24, 8);
  net.run_embedding("embed", 6);
  net.run_linear("fc1", 6);
  net.run_norm("norm", 6 * 24);
  net.run_linear("fc2", 6);
  net.run_tied("head", "embed.weight", 6);
  return std::move(net).spec();
}

NetworkSpec shuffled() {
  NetworkBuilder net("shuffled", Dtype::fp32);
  net.linear("head", 16, 5);
  net.linear("twice", 16, 16);
  net.conv("conv2", 6, 4, 3, true);
  net.batch_norm("bn", 6);
  net.conv("conv1", 3, 6, 3, true);
  const Image image = net.run_conv("conv1", {3, 4, 4}, {3, 1, 1});
  net.run_batch_norm("bn", image.elements());
  net.run_conv("conv2", image, {3, 1, 1});
  net.run_linear("twice", 1);
  net.run_elementwise("tanh", 16, 16);
  net.run_linear("twice", 1);
  net.run_linear("head", 1);
  return std::move(net).spec();
}

NetworkSpec unused() {
  NetworkBuilder net("unused", Dtype::fp32);
  net.linear("fc1", 8, 16);
  net.linear("spare", 8, 8);
  net.linear("fc2", 16, 8);
  net.run_linear("fc1", 1);
  net.run_linear("fc2", 1);
  return std::move(net).spec();
}

NetworkSpec three_linears() {
  NetworkBuilder net("linears", Dtype::fp32);
  net.linear("fc1", 8, 16);
  net.linear("fc2", 16, 16);
  net.linear("fc3", 16, 8);
  for (const char* name : {"fc1", "fc2", "fc3"}) net.run_linear(name, 1);
  return std::move(net).spec();
}

NetworkSpec frozen() {
  NetworkSpec spec = three_linears();
  spec.parameters[0].requires_grad = spec.parameters[1].requires_grad = false;
  return spec;
}

NetworkSpec two_types() {
  NetworkSpec spec = three_linears();
  spec.parameters[2].dtype = spec.parameters[3].dtype = Dtype::fp64;
  return spec;
}

NetworkSpec sparse() {
  NetworkBuilder net("sparse", Dtype::fp32);
  net.embedding("embed", 13, 8, true);
  net.linear("fc1", 8, 16);
  net.linear("fc2", 16, 8);
  net.run_embedding("embed", 6);
  net.run_linear("fc1", 6);
  net.run_linear("fc2", 6);
  return std::move(net).spec();
}

NetworkSpec branches() {
  NetworkBuilder net("branches", Dtype::fp32);
  net.embedding("word", 13, 8);
  net.embedding("position", 6, 8);
  net.embedding("type", 2, 8);
  net.layer_norm("norm", 8);
  for (const char* name : {"query", "key", "value", "out"}) net.linear(name, 8, 8);
  net.linear("in_proj", 8, 24);  // MultiheadAttention's own tensors
  net.linear("out_proj", 8, 8);
  for (const char* name : {"word", "type", "position"}) net.run_embedding(name, 6);
  net.run_norm("norm", 48);
  for (const char* name : {"query", "key", "value"}) net.run_linear(name, 6);
  net.run_attention("attention", {.tokens = 6, .width = 8, .key_width = 8});
  net.run_linear("out", 6);
  net.run_add("add", 48);
  net.run_linear("in_proj", 6);
  net.run_linear("out_proj", 6);
  return std::move(net).spec();
}

std::vector<std::int64_t> sizes(const BucketList& buckets) {
  std::vector<std::int64_t> all;
  for (const Bucket& bucket : buckets) all.push_back(bucket.size.raw());
  return all;
}

void check_toy(const NetworkSpec& spec, BucketOptions options, const Measured& measured) {
  options.bucket_cap_mb = 0.0005;
  options.first_bucket_bytes = sim::bytes(128);
  options.version = {1, 13};
  const NeuralNetwork network = validate(spec).value();
  const BucketPlan plan = plan_buckets(network, options).value();
  CHECK(bucket_inputs(network).arrival == measured.arrival);
  CHECK(sizes(plan.of_iteration(1)) == measured.initial);
  CHECK(plan.rebuild_before_iteration.value_or(0) == measured.rebuilt_before);
  if (measured.rebuilt_before == 0) {
    CHECK(measured.rebuilt.empty());
    CHECK(plan.of_iteration(3) == plan.of_iteration(1));
    return;
  }
  CHECK(sizes(plan.of_iteration(3)) == measured.rebuilt);
  CHECK(indices(plan.of_iteration(3)) == measured.rebuilt_indices);
}

}  // namespace

TEST_CASE("[oracle] buckets: PyTorch assigns every model of the catalogue as we do") {
  if (!has_torch()) RAILYARD_SKIP_ORACLE(kNoTorch);
  const Scratch scratch;
  CaseWriter writer(scratch.file("cases"));
  for (const std::string_view name : model_names()) {
    const BucketInputs inputs = bucket_inputs(build_model(name).value());
    writer.tensors(inputs.tensors);
    for (const std::int64_t mebibytes : {1, 5, 25, 40, 100, 400}) {
      const Bytes cap = sim::bytes(mebibytes << 20);
      for (const auto& limits : {std::vector{cap}, std::vector{kDefaultFirstBucket, cap}}) {
        const std::string label = fmt::format("{} cap {}", name, mebibytes);
        writer.ask(label + " registered", limits, {});
        writer.ask(label + " arrival", limits, inputs.arrival);
        writer.ask(label + " reversed", limits, reversed(inputs.tensors.size()));
      }
    }
  }
  const std::vector<Case> cases = writer.finish();
  CHECK(cases.size() == model_names().size() * 6 * 2 * 3);
  CHECK(ask_torch(cases, scratch).same_order == cases.size());
}

TEST_CASE("[oracle] buckets: PyTorch assigns 500 random parameter lists as we do") {
  if (!has_torch()) RAILYARD_SKIP_ORACLE(kNoTorch);
  const Scratch scratch;
  CaseWriter writer(scratch.file("cases"));
  for (std::uint32_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    const std::vector<BucketTensor> tensors = random_tensors(random);
    const std::vector<Bytes> limits = random_limits(random);
    writer.tensors(tensors);
    writer.ask(fmt::format("seed {} registered", seed), limits, {});
    writer.ask(fmt::format("seed {} ordered", seed), limits, random.permutation(tensors.size()));
  }
  const std::vector<Case> cases = writer.finish();
  const Tally tally = ask_torch(cases, scratch);
  CHECK(tally.same_set == 1000);
  MESSAGE(tally.same_order << " of " << tally.same_set << " in PyTorch's very order");
}

TEST_CASE("[oracle] buckets: two Gloo processes rebuild what we predict") {
  if (!has_torch()) RAILYARD_SKIP_ORACLE(kNoTorch);
  const Scratch scratch;
  REQUIRE(run_script("ddp_buckets.py", fmt::format("'{}'", scratch.file("measured"))) == 0);
  const std::map<std::string, Measured> measured = read_measured(scratch.file("measured"));
  struct Toy {
    const char* name;
    NetworkSpec spec;
    BucketOptions options;
  };
  const std::vector<Toy> toys{
      {"tied", tied(), {}},
      {"shuffled", shuffled(), {}},
      {"find_unused", unused(), {.find_unused_parameters = true}},
      {"static", shuffled(), {.static_graph = true}},
      {"static_unused", unused(), {.static_graph = true}},
      {"frozen", frozen(), {}},
      {"sparse", sparse(), {}},
      {"two_types", two_types(), {}},
      {"branches", branches(), {}},
      {"bucket_view", tied(), {.gradient_as_bucket_view = true}},
      {"small_last", tied(), {.ddp_set_last_bucket_cap = true}},
  };
  for (const Toy& toy : toys) {
    CAPTURE(toy.name);
    REQUIRE(measured.contains(toy.name));
    check_toy(toy.spec, toy.options, measured.at(toy.name));
  }
}
