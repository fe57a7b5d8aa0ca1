#include <atomic>
#include <thread>

#include "calibrate/probes/cuda/affinity.h"
#include "calibrate/probes/cuda/kernels.h"
#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

// A run of many rounds less a run of few: start-up, launch and the last answer cancel.
constexpr unsigned kFew = 200, kMany = 2200;
constexpr int kSamples = 15;
constexpr std::size_t kFlagBytes = 256;  // flags of two sides never share a line

void add(Session& session, const Labels& labels, const std::function<double(unsigned)>& run) {
  run(kFew);  // warm
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const double one_way = (run(kMany) - run(kFew)) / (kMany - kFew) / 2;
    if (one_way > 0) samples.push_back(one_way);
  }
  if (samples.empty()) throw ProbeError("the clock shows no difference between runs");
  session.report.rows.push_back({"cuda.flag", labels, 4, 0, summarize(samples), {}, ""});
}

void zero(const Buffer& flag, std::size_t bytes) {
  PROBE_CUDA(cudaMemset(flag.as<void>(), 0, bytes));
  PROBE_CUDA(cudaDeviceSynchronize());
}

void require_played(const Buffer& failed) {
  unsigned value = 1;
  PROBE_CUDA(cudaMemcpy(&value, failed.as<void>(), sizeof value, cudaMemcpyDeviceToHost));
  if (value != 0) throw ProbeError("a side waited in vain for its flag");
}

double elapsed_us(const Event& start, const Event& stop) {
  PROBE_CUDA(cudaEventSynchronize(stop));
  float milliseconds = 0;
  PROBE_CUDA(cudaEventElapsedTime(&milliseconds, start, stop));
  return static_cast<double>(milliseconds) * 1e3;
}

void measure_blocks(Session& session) {
  session.run_cell("flags between blocks", [&] {
    const OnDevice here(0);
    const Stream stream(0);
    const Event start(0), stop(0);
    const Buffer a = Buffer::on_device(0, kFlagBytes), b = Buffer::on_device(0, kFlagBytes);
    const Buffer failed = Buffer::on_device(0, kFlagBytes);
    add(session, {{"between", "blocks"}, {"device", "0"}}, [&](unsigned rounds) {
      zero(a, kFlagBytes), zero(b, kFlagBytes), zero(failed, kFlagBytes);
      PROBE_CUDA(cudaEventRecord(start, stream));
      launch_flag_pair({a.as<unsigned>(), b.as<unsigned>(), rounds, failed.as<unsigned>()},
                       {b.as<unsigned>(), a.as<unsigned>(), rounds, failed.as<unsigned>()}, stream);
      PROBE_CUDA(cudaEventRecord(stop, stream));
      const double time = elapsed_us(start, stop);
      require_played(failed);
      return time;
    });
  });
}

// One side of a ping-pong between devices: its stream, its flag, which the other side sets, and
// whether it gave up.
struct DeviceSide {
  explicit DeviceSide(int device)
      : stream(device),
        flag(Buffer::on_device(device, kFlagBytes)),
        failed(Buffer::on_device(device, kFlagBytes)) {
    launch(*this, 0, false);  // loads the kernel, which must not happen while the other side waits
    stream.wait();
  }

  void clear() const {
    const OnDevice here(stream.device());
    zero(flag, kFlagBytes), zero(failed, kFlagBytes);
  }
  void launch(const DeviceSide& other, unsigned rounds, bool first) const {
    const OnDevice here(stream.device());
    launch_flag_side(
        {flag.as<unsigned>(), other.flag.as<unsigned>(), rounds, failed.as<unsigned>()}, first,
        stream);
  }

  Stream stream;
  Buffer flag, failed;
};

void measure_devices(Session& session, int a, int b) {
  session.run_cell("flags between " + std::to_string(a) + " and " + std::to_string(b), [&] {
    const DeviceSide one(a), other(b);
    const OnDevice here(a);
    const Event start(a), stop(a);
    add(session, {{"between", "devices"}, {"from", std::to_string(a)}, {"to", std::to_string(b)}},
        [&](unsigned rounds) {
          one.clear(), other.clear();
          other.launch(one, rounds, false);  // waits there already when the first one starts
          PROBE_CUDA(cudaEventRecord(start, one.stream));
          one.launch(other, rounds, true);
          PROBE_CUDA(cudaEventRecord(stop, one.stream));
          const double time = elapsed_us(start, stop);
          other.stream.wait();
          require_played(one.failed), require_played(other.failed);
          return time;
        });
  });
}

// The host's side: answers until `rounds` are done; false when the GPU stays silent.
bool answer(unsigned* mine, unsigned* theirs, unsigned rounds) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(2);
  for (unsigned round = 1; round <= rounds; ++round) {
    while (__atomic_load_n(mine, __ATOMIC_ACQUIRE) != round)
      if (Clock::now() > deadline) return false;
    __atomic_store_n(theirs, round, __ATOMIC_RELEASE);
  }
  return true;
}

// Both flags lie in host memory, as those of a proxy thread do.
void measure_host(Session& session) {
  session.run_cell("flags between GPU and host", [&] {
    const NearDevice near(0);
    const OnDevice here(0);
    const Stream stream(0);
    const Event start(0), stop(0);
    const Buffer gpu = Buffer::on_host(kFlagBytes), host = Buffer::on_host(kFlagBytes);
    const Buffer failed = Buffer::on_device(0, kFlagBytes);
    add(session, {{"between", "gpu-host"}, {"device", "0"}}, [&](unsigned rounds) {
      __atomic_store_n(gpu.as<unsigned>(), 0U, __ATOMIC_SEQ_CST);
      __atomic_store_n(host.as<unsigned>(), 0U, __ATOMIC_SEQ_CST);
      zero(failed, kFlagBytes);
      PROBE_CUDA(cudaEventRecord(start, stream));
      launch_flag_side(
          {gpu.in_kernel<unsigned>(), host.in_kernel<unsigned>(), rounds, failed.as<unsigned>()},
          true, stream);
      PROBE_CUDA(cudaEventRecord(stop, stream));
      const bool answered = answer(host.as<unsigned>(), gpu.as<unsigned>(), rounds);
      const double time = elapsed_us(start, stop);
      if (!answered) throw ProbeError("the host waited in vain for the GPU's flag");
      require_played(failed);
      return time;
    });
  });
}

}  // namespace

void measure_flags(Session& session) {
  measure_blocks(session);
  measure_host(session);
  for (int a = 0; a < session.devices; ++a)
    for (int b = a + 1; b < session.devices; ++b)
      if (session.connected(a, b) && session.connected(b, a)) measure_devices(session, a, b);
}

}  // namespace railyard::probe
