#include <algorithm>
#include <cmath>

#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSampleUs = 100;  // one sample lasts about this long at least
constexpr double kMostRepeats = 100;
constexpr std::size_t kFewestSamples = 5;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Samples of `sample(repeats)`, the time of one of `repeats` operations.
Summary collect(const Effort& effort, const std::function<double(int)>& sample) {
  sample(1);  // the first one pays for whatever is loaded lazily
  const double once = std::max(sample(1), 1e-3);
  const int repeats = static_cast<int>(std::clamp(std::ceil(kSampleUs / once), 1.0, kMostRepeats));
  sample(repeats);
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (samples.size() < kFewestSamples ||
         (samples.size() < static_cast<std::size_t>(effort.most_samples) &&
          microseconds_since(start) < effort.seconds * 1e6))
    samples.push_back(sample(repeats));
  return summarize(samples);
}

}  // namespace

void Session::run_cell(const std::string& name, const std::function<void()>& cell) {
  if (Clock::now() > deadline) {
    ++left_out;
    return;
  }
  try {
    cell();
  } catch (const ProbeError& error) {
    report.notes.push_back(name + ": " + error.what());
    // An error that sticks to the context spoils whatever comes after.
    if (cudaDeviceSynchronize() != cudaSuccess)
      throw ProbeError(name + " broke the CUDA context: " + error.what());
  }
}

Summary time_on_device(const Stream& stream, const Effort& effort,
                       const std::function<void()>& work) {
  const OnDevice here(stream.device());
  const Event start(stream.device()), stop(stream.device());
  return collect(effort, [&](int repeats) {
    PROBE_CUDA(cudaEventRecord(start, stream));
    for (int i = 0; i < repeats; ++i) work();
    PROBE_CUDA(cudaEventRecord(stop, stream));
    PROBE_CUDA(cudaEventSynchronize(stop));
    float milliseconds = 0;
    PROBE_CUDA(cudaEventElapsedTime(&milliseconds, start, stop));
    return static_cast<double>(milliseconds) * 1e3 / repeats;
  });
}

Summary time_on_host(const Effort& effort, const std::function<void()>& work) {
  return collect(effort, [&](int repeats) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats; ++i) work();
    return microseconds_since(start) / repeats;
  });
}

}  // namespace railyard::probe
