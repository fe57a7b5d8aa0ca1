#include "calibrate/probes/verbs/measure.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "calibrate/probes/common/agreement.h"
#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSamples = 10;
constexpr int kTrips = 1000, kRegistrations = 10;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// ---- bandwidth ----------------------------------------------------------------------------------

struct Stream {
  Verb verb = Verb::write;
  const Region& memory;
  RemoteMemory remote;
  std::uint32_t bytes = 0;
};

// Rank 0: `messages` of them, as many in flight as the queues hold.
double stream_out(Queues& queues, const Stream& stream, std::int64_t messages) {
  const Clock::time_point start = Clock::now();
  std::int64_t posted = 0;
  const auto post = [&](int queue) {
    queues.post(queue, {stream.verb, stream.memory, stream.remote, stream.bytes});
    ++posted;
  };
  for (int n = 0; n < queues.depth(); ++n)
    for (int queue = 0; queue < queues.count() && posted < messages; ++queue) post(queue);
  for (std::int64_t done = 0; done < messages; ++done) {
    const int queue = queues.wait_for_one();
    if (posted < messages) post(queue);
  }
  return microseconds_since(start);
}

// Rank 1, for sends alone: keeps receives posted until all messages of all samples are in. Which
// queue a message comes by is the sender's affair, so that each always has its receives.
void stream_in(Queues& queues, const Stream& stream, std::int64_t messages) {
  for (std::int64_t done = 0; done < messages; ++done)
    queues.post_receive(queues.wait_for_one(), stream.memory);
}

// As many receives as a pair takes, each for messages of any size.
void fill_receives(Queues& queues, const Region& memory) {
  for (int queue = 0; queue < queues.count(); ++queue)
    for (int n = 0; n < queues.receives(); ++n) queues.post_receive(queue, memory);
}

struct Cell {
  std::string verb, name;
  std::int64_t pairs, depth;
  double seconds;
};

void measure_size(Queues& queues, Store& store, const Stream& stream, const Cell& cell,
                  Report& report) {
  const bool sends = stream.verb == Verb::send, first = store.rank() == 0;
  const std::string name = cell.name + "/" + std::to_string(stream.bytes);
  const std::int64_t trial = cell.pairs * cell.depth;
  store.barrier(name + "/begin");
  double once = 0;
  if (first) once = stream_out(queues, stream, trial) / static_cast<double>(trial);
  if (sends && !first) stream_in(queues, stream, trial);
  const double wanted = cell.seconds * 1e6 / static_cast<double>(kSamples) / std::max(once, 0.01);
  const std::int64_t messages = number_of_first(
      store, name, std::clamp(static_cast<std::int64_t>(wanted), trial, std::int64_t{1000000}));
  std::vector<double> samples;
  for (std::int64_t i = 0; first && i < kSamples; ++i)
    samples.push_back(stream_out(queues, stream, messages) / static_cast<double>(messages));
  if (sends && !first) stream_in(queues, stream, messages * kSamples);
  store.barrier(name + "/end");
  report.rows.push_back({"verbs.bandwidth",
                         {{"verb", cell.verb},
                          {"memory", stream.memory.kind()},
                          {"pairs", std::to_string(cell.pairs)},
                          {"depth", std::to_string(cell.depth)}},
                         stream.bytes,
                         stream.bytes,
                         summarize(samples),
                         {},
                         ""});
}

// ---- latency ------------------------------------------------------------------------------------

void wait_for_byte(const volatile char* place, char value) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(20);
  for (unsigned polls = 1; *place != value; ++polls)
    if (polls % 65536 == 0 && Clock::now() > deadline)
      throw ProbeError("the peer's write did not arrive in time");
}

// One trip there and back; values differ from trip to trip, so that an old one is never taken for
// a new one. `source` and `target` are apart: what arrives must not change what is sent.
void write_trip(Queues& queues, const Stream& out, const Region& target, char value, bool first) {
  const volatile char* const last = target.address() + out.bytes - 1;
  if (!first) wait_for_byte(last, value);
  out.memory.address()[out.bytes - 1] = value;
  queues.post(0, {Verb::write, out.memory, out.remote, out.bytes});
  queues.wait_for_one();
  if (first) wait_for_byte(last, value);
}

// Sends and receives complete on one queue, in whatever order; after 2 n + 1 completions rank 1 has
// all of n + 1 requests. Two receives are always posted, so that a request that overtakes the
// completion of the last answer finds one.
void send_trip(Queues& queues, const Stream& out, const Region& target, bool first) {
  const auto send = [&] { queues.post(0, {Verb::send, out.memory, out.remote, out.bytes}); };
  if (first) send();
  queues.wait_for_one();  // rank 0: its send or the answer; rank 1: the request
  if (!first) send();
  queues.wait_for_one();
  queues.post_receive(0, target);
}

void one_trip(Queues& queues, const Stream& out, const Region& target, int number, bool first) {
  switch (out.verb) {
    case Verb::write:
      write_trip(queues, out, target, static_cast<char>(number % 2 + 1), first);
      return;
    case Verb::send: send_trip(queues, out, target, first); return;
    case Verb::read:
      if (!first) return;
      queues.post(0, {Verb::read, out.memory, out.remote, out.bytes});
      queues.wait_for_one();
  }
}

void measure_trips(Queues& queues, Store& store, const Stream& out, const Region& target,
                   Report& report) {
  const bool first = store.rank() == 0;
  const std::string name =
      "trips/" + std::to_string(static_cast<int>(out.verb)) + "/" + std::to_string(out.bytes);
  if (out.verb == Verb::write) target.address()[out.bytes - 1] = 0;
  store.barrier(name + "/begin");
  std::vector<double> samples;
  for (int trip = 0; trip < kTrips; ++trip) {
    const Clock::time_point start = Clock::now();
    one_trip(queues, out, target, trip, first);
    const double time = microseconds_since(start);
    if (trip >= kTrips / 10) samples.push_back(out.verb == Verb::read ? time : time / 2);
  }
  store.barrier(name + "/end");
  const char* const verbs[] = {"write", "read", "send"};
  report.rows.push_back({"verbs.latency",
                         {{"verb", verbs[static_cast<int>(out.verb)]}, {"memory", "host"}},
                         out.bytes,
                         out.bytes,
                         summarize(samples),
                         {},
                         ""});
}

// ---- registration -------------------------------------------------------------------------------

struct Registered {
  const char* kind;
  void* address;
  std::int64_t bytes;
  int dma_buffer;
};

// What is refused (a limit on locked memory, most often) becomes a note.
void time_registration(const Adapter& adapter, const Registered& memory, Report& report) {
  std::vector<double> there, back;
  for (int i = 0; i <= kRegistrations; ++i) {
    const Clock::time_point start = Clock::now();
    RegionPointer region = register_memory(
        adapter, memory.address, static_cast<std::size_t>(memory.bytes), memory.dma_buffer);
    const double registering = microseconds_since(start);
    if (!region) {
      report.notes.push_back("registering " + size_text(memory.bytes) + " of " + memory.kind +
                             " memory: " + std::strerror(errno));
      return;
    }
    const Clock::time_point middle = Clock::now();
    region.reset();
    if (i == 0) continue;  // a warm-up
    there.push_back(registering);
    back.push_back(microseconds_since(middle));
  }
  const Labels labels = {{"memory", memory.kind}};
  report.rows.push_back(
      {"verbs.register", labels, memory.bytes, memory.bytes, summarize(there), {}, ""});
  report.rows.push_back(
      {"verbs.deregister", labels, memory.bytes, memory.bytes, summarize(back), {}, ""});
}

}  // namespace

Verb verb_of(const std::string& name) {
  if (name == "write") return Verb::write;
  if (name == "read") return Verb::read;
  if (name == "send") return Verb::send;
  throw UsageError("there is no verb '" + name + "'; write, read and send are");
}

void measure_registration(const Adapter& adapter, const VerbsPlan& plan, Report& report) {
  for (const std::int64_t bytes : plan.registered) {
    std::vector<char> memory(static_cast<std::size_t>(bytes), 'r');  // touched
    time_registration(adapter, {"host", memory.data(), bytes, -1}, report);
  }
  for (const std::int64_t bytes : plan.registered) {
    if (plan.gpu < 0) break;
    const GpuMemory memory(static_cast<int>(plan.gpu), static_cast<std::size_t>(bytes));
    const int descriptor = memory.dma_buffer();
    time_registration(
        adapter,
        {descriptor < 0 ? "gpu-peermem" : "gpu-dmabuf", memory.address(), bytes, descriptor},
        report);
    if (descriptor >= 0) close(descriptor);
  }
}

void measure_bandwidth(const Adapter& adapter, Store& store, const VerbsPlan& plan, int gpu,
                       Report& report) {
  const std::string where = gpu < 0 ? "host" : "gpu";
  const auto most =
      static_cast<std::size_t>(*std::max_element(plan.sizes.begin(), plan.sizes.end()));
  const Region memory(adapter, most, gpu);
  const RemoteMemory remote = exchange(store, where, memory);
  std::vector<Cell> cells;
  for (const std::int64_t pairs : plan.pairs)
    for (const std::int64_t depth : plan.depths)
      for (const std::string& verb : plan.verbs)
        cells.push_back(
            {verb, where + "/" + std::to_string(pairs) + "/" + std::to_string(depth) + "/" + verb,
             pairs, depth, plan.seconds});
  for (const Cell& cell : cells) {
    // New pairs for every verb: receives that a verb left posted must not take another's.
    Queues queues(adapter, store, cell.name, static_cast<int>(cell.pairs),
                  static_cast<int>(cell.depth));
    const Verb verb = verb_of(cell.verb);
    if (verb == Verb::send && store.rank() != 0) fill_receives(queues, memory);
    for (const std::int64_t bytes : plan.sizes)
      measure_size(queues, store, {verb, memory, remote, static_cast<std::uint32_t>(bytes)}, cell,
                   report);
  }
}

void measure_latency(const Adapter& adapter, Store& store, const VerbsPlan& plan, Report& report) {
  const auto most =
      static_cast<std::size_t>(*std::max_element(plan.sizes.begin(), plan.sizes.end()));
  const Region source(adapter, most, -1), target(adapter, most, -1);
  const RemoteMemory remote = exchange(store, "latency", target);
  for (const std::string& verb : plan.verbs) {
    const Clock::time_point start = Clock::now();
    Queues queues(adapter, store, "latency/" + verb, 1, 1);
    report.rows.push_back(
        {"verbs.queue_pair", {}, 0, 0, summarize({microseconds_since(start)}), {}, ""});
    if (verb_of(verb) == Verb::send) fill_receives(queues, target);
    for (const std::int64_t bytes : plan.sizes)
      measure_trips(queues, store,
                    {verb_of(verb), source, remote, static_cast<std::uint32_t>(bytes)}, target,
                    report);
  }
}

}  // namespace railyard::probe
