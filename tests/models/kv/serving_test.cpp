// Queues, batches and caches, solved by hand with costs that are a formula. The wire is fast where
// it does not matter.
#include "models/kv/serving.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace railyard::models {
namespace {

using namespace sim::literals;

// Prefill 1 us per token, a decode step 100 us + 1 us per sequence.
class LinearCosts final : public ServingCosts {
 public:
  sim::Duration prefill(const std::vector<std::int64_t>& tokens) override {
    sim::Duration sum{};
    for (const std::int64_t each : tokens) sum += 1_us * each;
    return sum;
  }
  sim::Duration decode(std::int64_t sequences, std::int64_t cached) override {
    contexts.push_back(cached);
    return 100_us + 1_us * sequences;
  }
  std::vector<std::int64_t> contexts;
};

struct Setup {
  ServingOptions options;
  std::vector<KvRequest> requests;
  KvTransferCosts costs;
  sim::Bandwidth wire = 1000_GBps;
};

// Two layers, one head of 128 elements of two bytes: 1024 B per token, 4 regions. Blocks of 16.
Setup setup(std::uint32_t prefill, std::uint32_t decode) {
  Setup out;
  out.options.model.layers = 2;
  out.options.model.heads = out.options.model.kv_heads = 1;
  out.options.model.head_dim = 128;
  for (std::uint32_t i = 0; i < prefill; ++i) out.options.prefill.instances.push_back({{i}});
  for (std::uint32_t i = 0; i < decode; ++i)
    out.options.decode.instances.push_back({{prefill + i}});
  out.options.prefill.blocks = out.options.decode.blocks = 1'000'000;
  out.options.max_batched_tokens = 1;  // one request per batch
  return out;
}

KvRequest request(sim::Duration arrival, std::int64_t input, std::int64_t output) {
  return {sim::Time(arrival), input, output};
}

class Run {
 public:
  explicit Run(Setup given) : network_(queue_), transfers_(queue_, network_), trace_(1) {
    queue_.set_settler(&network_);
    const sim::ResourceId wire = network_.add_resource(given.wire);
    const std::vector<sim::ResourceUse> uses{{wire, 1}};
    std::vector<std::uint32_t> senders;
    for (std::size_t p = 0; p < given.options.prefill.instances.size(); ++p)
      senders.push_back(transfers_.add_sender(given.costs));
    for (std::size_t p = 0; p < given.options.prefill.instances.size(); ++p)
      for (std::size_t d = 0; d < given.options.decode.instances.size(); ++d)
        given.options.links.push_back(
            {{senders[p], {transfers_.add_way({{uses, {}, {}, {}, {}}})}}});
    serving_.emplace(std::move(given.options), std::move(given.requests),
                     Serving::World{&queue_, &trace_, &costs, &transfers_, [this] { ++ends; }});
    serving_->start();
    queue_.run();
  }
  [[nodiscard]] const Serving& serving() const { return *serving_; }
  [[nodiscard]] const RequestTimes& times(std::size_t request) const {
    return serving_->times()[request];
  }
  [[nodiscard]] std::uint64_t hash() const { return trace_.hash(); }

  LinearCosts costs;
  int ends = 0;

 private:
  sim::EventQueue queue_;
  sim::Network network_;
  KvTransfers transfers_;
  sim::Trace trace_;
  std::optional<Serving> serving_;
};

sim::Duration since_start(sim::Time time) { return time.time_since_epoch(); }

TEST_CASE("kv serving: one request, every part of its time") {
  Setup given = setup(1, 1);
  given.wire = 1_GBps;
  given.costs.request_overhead = 7_us;
  given.costs.handshake = 11_us;
  given.requests = {request(50_us, 1000, 3)};
  const Run run(given);
  const RequestTimes& times = run.times(0);
  CHECK(since_start(times.prefill_start) == 50_us);
  CHECK(since_start(times.prefill_end) == 1050_us);
  CHECK(times.transfer_start == times.prefill_end);
  // 1001 tokens with the slot of the first output: 63 blocks of 16 x 1024 B at 1 GB/s.
  const sim::Duration wire = sim::transfer_time(sim::bytes(63 * 16 * 1024), 1_GBps);
  CHECK(since_start(times.on_wire) == 1050_us + 18_us);
  CHECK(since_start(times.transfer_end) == 1068_us + wire);
  CHECK(times.moved == sim::bytes(63 * 16 * 1024));
  CHECK(times.descriptors == 4);  // one run in each region
  CHECK(times.first_token == times.transfer_end + 101_us);
  CHECK(times.end == times.transfer_end + 303_us);
  CHECK(run.costs.contexts == std::vector<std::int64_t>{1000, 1001, 1002});
  CHECK(run.serving().finished());
  CHECK(run.ends == 1);
}

// A queue with equal gaps g and service s: request i waits max(0, i (s - g)) (Lindley's recursion).
TEST_CASE("kv serving: deterministic arrivals at one prefill instance") {
  for (const std::int64_t gap : {800, 1000, 1300}) {
    CAPTURE(gap);
    Setup given = setup(1, 1);
    for (std::int64_t i = 0; i < 20; ++i)
      given.requests.push_back(request(1_us * (gap * i), 1000, 1));
    const Run run(given);
    for (std::int64_t i = 0; i < 20; ++i) {
      const sim::Duration wait = std::max(sim::Duration(), 1_us * (i * (1000 - gap)));
      CHECK(run.times(static_cast<std::size_t>(i)).prefill_start - sim::Time(1_us * (gap * i)) ==
            wait);
    }
  }
}

// M/D/1: mean wait = rho s / (2 (1 - rho)). With rho = 0.5 and s = 1 ms: 0.5 ms.
TEST_CASE("kv serving: Poisson arrivals wait as M/D/1 says") {
  Setup given = setup(1, 1);
  std::uint64_t state = 12345;
  sim::Duration at{};
  const std::size_t count = 60'000;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double uniform = (static_cast<double>(state >> 11) + 0.5) * 0x1p-53;
    at += sim::Duration(static_cast<std::int64_t>(-std::log(uniform) * 2e9));
    given.requests.push_back(request(at, 1000, 1));
  }
  const Run run(given);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum += sim::to_us(run.times(i).prefill_start - run.times(i).arrival);
  CHECK(sum / static_cast<double>(count) == doctest::Approx(500).epsilon(0.04));
  CHECK(sim::to_seconds(run.serving().prefill_busy(0)) == doctest::Approx(60));
}

TEST_CASE("kv serving: the prefill instance with the fewest tokens takes the next request") {
  Setup given = setup(2, 1);
  given.requests = {request(0_us, 1000, 1), request(1_us, 100, 1), request(2_us, 100, 1),
                    request(3_us, 100, 1)};
  const Run run(given);
  CHECK(run.times(0).prefill_instance == 0);
  for (const std::size_t other : {1, 2, 3}) CHECK(run.times(other).prefill_instance == 1);
  CHECK(since_start(run.times(3).prefill_start) == 201_us);
}

TEST_CASE("kv serving: short prompts are prefilled together") {
  Setup given = setup(1, 1);
  given.options.max_batched_tokens = 300;
  for (int i = 0; i < 4; ++i) given.requests.push_back(request(0_us, 100, 1));
  const Run run(given);
  // The first comes alone, since it is there before the others; then three at once.
  CHECK(since_start(run.times(0).prefill_end) == 100_us);
  for (const std::size_t later : {1, 2, 3})
    CHECK(since_start(run.times(later).prefill_end) == 400_us);
}

TEST_CASE("kv serving: arrivals join the batch between steps") {
  Setup given = setup(2, 1);
  given.requests = {request(0_us, 10, 4), request(100_us, 10, 2)};
  const Run run(given);
  // 0: steps of 101 us from 10 us on (its bytes take 16 ns of wire). 1 is there at 110 us and joins
  // the step that begins at 111 us, of 102 us; so does the next; then 0 is alone again.
  const sim::Time begin = run.times(0).transfer_end;
  CHECK(run.times(0).first_token == begin + 101_us);
  CHECK(run.times(1).first_token == begin + 203_us);
  CHECK(run.times(1).end == begin + 305_us);
  CHECK(run.times(0).end == begin + 406_us);
  CHECK(run.costs.contexts == std::vector<std::int64_t>{10, 21, 23, 13});
  CHECK(run.serving().decode_steps() == 4);
  CHECK(run.serving().mean_batch() == doctest::Approx(1.5));
}

TEST_CASE("kv serving: a full decode cache lets requests wait, first come first served") {
  Setup given = setup(1, 1);
  given.options.decode.blocks = 8;  // one request of 100 + 20 tokens
  given.requests = {request(0_us, 100, 20), request(0_us, 100, 20)};
  const Run run(given);
  CHECK(run.times(1).transfer_start == run.times(0).end);
  CHECK(since_start(run.times(1).prefill_end) == 200_us);
}

TEST_CASE("kv serving: a full prefill cache waits for the transfer") {
  Setup given = setup(1, 1);
  given.options.prefill.blocks = 7;  // one prompt of 100 tokens and the slot of its output
  given.wire = 1_GBps;
  given.requests = {request(0_us, 100, 1), request(0_us, 100, 1)};
  const Run run(given);
  CHECK(run.times(1).prefill_start == run.times(0).transfer_end);
}

TEST_CASE("kv serving: decode instances fill up evenly, and no further than max_sequences") {
  Setup given = setup(1, 2);
  given.options.max_sequences = 1;
  for (int i = 0; i < 3; ++i) given.requests.push_back(request(0_us, 10, 10));
  const Run run(given);
  CHECK(run.times(0).decode_instance == 0);
  CHECK(run.times(1).decode_instance == 1);
  CHECK(run.times(2).decode_instance == 0);
  CHECK(run.times(2).transfer_start == run.times(0).end);
}

// Push hides all layers but the last: with L layers of compute c and wire w each, the exposed part
// is w for w <= c, else the wire is the bottleneck: c + L w - L c.
TEST_CASE("kv serving: layer-wise push hides the transfer behind the prefill") {
  for (const sim::Bandwidth wire : {1_GBps, sim::bytes_per_second(50'000'000)}) {
    Setup given = setup(1, 1);
    given.options.model.layers = 4;
    given.options.mode = TransferMode::push;
    given.wire = wire;
    given.requests = {request(0_us, 1000, 1)};
    const Run run(given);
    const sim::Duration layer = sim::transfer_time(sim::bytes(63 * 16 * 512), wire);
    const sim::Duration compute = 250_us;
    const sim::Duration exposed = layer <= compute ? layer : compute + layer * 4 - compute * 4;
    CHECK(run.times(0).transfer_end - run.times(0).prefill_end == exposed);
    CHECK(run.times(0).moved == sim::bytes(63 * 16 * 512 * 4));
    CHECK(run.times(0).descriptors == 8);
  }
}

TEST_CASE("kv serving: layers are pushed in groups, the last what is left") {
  Setup given = setup(1, 1);
  given.options.model.layers = 5;
  given.options.mode = TransferMode::push;
  given.options.layers_per_push = 2;
  given.costs.request_overhead = 1_us;
  given.requests = {request(0_us, 1000, 1)};
  const Run run(given);
  // Groups of 2, 2 and 1 layers, ready at 400, 800 and 1000 us.
  CHECK(since_start(run.times(0).on_wire) == 401_us);
  CHECK(run.times(0).moved == sim::bytes(63 * 16 * 512 * 5));
}

TEST_CASE("kv serving: a push without room in the decode pool is sent when there is some") {
  Setup given = setup(1, 1);
  given.options.mode = TransferMode::push;
  given.options.decode.blocks = 8;
  given.requests = {request(0_us, 100, 20), request(0_us, 100, 20)};
  const Run run(given);
  CHECK(run.times(1).transfer_start == run.times(0).end);
  CHECK(run.times(1).transfer_end > run.times(0).end);
  CHECK(run.serving().finished());
}

TEST_CASE("kv serving: blocks that are no longer neighbours take descriptors each") {
  Setup given = setup(1, 1);
  given.options.decode.blocks = 8;  // of 16 tokens; each request takes all of them
  given.requests = {request(0_us, 100, 20), request(10'000_us, 100, 20),
                    request(20'000_us, 100, 20)};
  given.options.prefill.blocks = 1000;
  const Run run(given);
  CHECK(run.times(0).descriptors == 4);
  CHECK(run.times(1).descriptors == 4 * 7);  // the decode cache gives them in falling order
  CHECK(run.times(2).descriptors == 4);      // and rising again
  given.costs.join_blocks = false;
  CHECK(Run(given).times(0).descriptors == 4 * 7);
}

TEST_CASE("kv serving: closed clients send when they have their answer") {
  Setup given = setup(1, 1);
  given.options.clients = 2;
  for (int i = 0; i < 6; ++i) given.requests.push_back(request(77'000_us, 100, 5));
  const Run run(given);
  CHECK(since_start(run.times(0).arrival) == 0_us);
  CHECK(since_start(run.times(1).arrival) == 0_us);
  std::vector<sim::Time> ends;
  for (std::size_t i = 0; i < 6; ++i) ends.push_back(run.times(i).end);
  std::ranges::sort(ends);
  for (std::size_t i = 2; i < 6; ++i) CHECK(run.times(i).arrival == ends[i - 2]);
  CHECK(run.serving().finished());
}

TEST_CASE("kv serving: equal runs have equal hashes, others do not") {
  Setup given = setup(2, 2);
  for (int i = 0; i < 50; ++i) given.requests.push_back(request(37_us * i, 100 + i, 5 + i % 3));
  const std::uint64_t hash = Run(given).hash();
  CHECK(Run(given).hash() == hash);
  given.requests.back().input_tokens += 16;
  CHECK(Run(given).hash() != hash);
}

}  // namespace
}  // namespace railyard::models
