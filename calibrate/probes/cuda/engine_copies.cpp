#include <algorithm>
#include <memory>

#include "calibrate/probes/common/args.h"
#include "calibrate/probes/cuda/affinity.h"
#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

const Sizes kSweep = {4096, 32768, 262144, 2097152, 16777216, 134217728};
constexpr std::int64_t kLarge = 67108864;

// One end of a copy: a device, or the host (-1).
struct End {
  int device = -1;
  bool pinned = true;

  [[nodiscard]] std::string name() const { return device < 0 ? "host" : std::to_string(device); }
};

class Memory {
 public:
  Memory(const End& end, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    if (end.device >= 0) {
      buffer_ = Buffer::on_device(end.device, size);
    } else if (end.pinned) {
      buffer_ = Buffer::on_host(size);
    } else {
      pageable_.assign(size, 'r');
    }
  }
  [[nodiscard]] void* data() { return pageable_.empty() ? buffer_.as<void>() : pageable_.data(); }

 private:
  Buffer buffer_;
  std::vector<char> pageable_;
};

Labels labels_of(const End& from, const End& to) {
  Labels labels = {{"from", from.name()}, {"to", to.name()}};
  if (!from.pinned || !to.pinned) labels["memory"] = "pageable";
  return labels;
}

void measure_copy(Session& session, const End& from, const End& to, const Sizes& sizes) {
  session.run_cell("copy " + from.name() + " to " + to.name(), [&] {
    const NearDevice near(from.device >= 0 ? from.device : to.device);
    const std::int64_t most = *std::max_element(sizes.begin(), sizes.end());
    Memory source(from, most), target(to, most);
    const Stream stream(from.device >= 0 ? from.device : to.device);
    for (const std::int64_t bytes : sizes) {
      const Summary time = time_on_device(stream, session.effort, [&] {
        PROBE_CUDA(cudaMemcpyAsync(target.data(), source.data(), static_cast<std::size_t>(bytes),
                                   cudaMemcpyDefault, stream));
      });
      session.report.rows.push_back({"cuda.copy", labels_of(from, to), bytes, bytes, time, {}, ""});
    }
  });
}

// Both directions between a and b on two streams of a; the second waits for the first's start, and
// the time ends when both have.
void measure_both(Session& session, const End& a, const End& b) {
  session.run_cell("copies between " + a.name() + " and " + b.name(), [&] {
    const NearDevice near(a.device);
    Memory at_a(a, kLarge), at_b(b, kLarge), also_a(a, kLarge), also_b(b, kLarge);
    const Stream there(a.device), back(a.device);
    const Event begun(a.device), ended(a.device);
    const Summary time = time_on_device(there, session.effort, [&] {
      PROBE_CUDA(cudaEventRecord(begun, there));
      PROBE_CUDA(cudaStreamWaitEvent(back, begun, 0));
      PROBE_CUDA(cudaMemcpyAsync(at_b.data(), at_a.data(), kLarge, cudaMemcpyDefault, there));
      PROBE_CUDA(cudaMemcpyAsync(also_a.data(), also_b.data(), kLarge, cudaMemcpyDefault, back));
      PROBE_CUDA(cudaEventRecord(ended, back));
      PROBE_CUDA(cudaStreamWaitEvent(there, ended, 0));
    });
    session.report.rows.push_back(
        {"cuda.copy_both", labels_of(a, b), kLarge, 2 * kLarge, time, {}, ""});
  });
}

// A host copy of every device at once, by the host's clock.
void measure_all(Session& session, bool to_device) {
  session.run_cell("host copies of all devices", [&] {
    std::vector<Memory> hosts, devices;
    std::vector<std::unique_ptr<Stream>> streams;
    for (int device = 0; device < session.devices; ++device) {
      const NearDevice near(device);
      hosts.emplace_back(End{}, kLarge);
      devices.emplace_back(End{device}, kLarge);
      streams.push_back(std::make_unique<Stream>(device));
    }
    const Summary time = time_on_host(session.effort, [&] {
      for (std::size_t i = 0; i < streams.size(); ++i) {
        const OnDevice here(static_cast<int>(i));
        void* from = to_device ? hosts[i].data() : devices[i].data();
        void* to = to_device ? devices[i].data() : hosts[i].data();
        PROBE_CUDA(cudaMemcpyAsync(to, from, kLarge, cudaMemcpyDefault, *streams[i]));
      }
      for (const auto& stream : streams) stream->wait();
    });
    const std::string all = std::to_string(session.devices) + " devices";
    session.report.rows.push_back(
        {"cuda.copy_all",
         {{"from", to_device ? "host" : all}, {"to", to_device ? all : "host"}},
         kLarge,
         kLarge * session.devices,
         time,
         {},
         ""});
  });
}

}  // namespace

void measure_engine_copies(Session& session) {
  const End host, first{0}, pageable{-1, false};
  measure_copy(session, host, first, kSweep);
  measure_copy(session, first, host, kSweep);
  measure_copy(session, first, first, kSweep);
  measure_copy(session, pageable, first, {262144, 16777216});
  measure_copy(session, first, pageable, {262144, 16777216});
  measure_both(session, first, host);
  for (int device = 1; device < session.devices; ++device) {
    measure_copy(session, host, {device}, {kLarge});
    measure_copy(session, {device}, host, {kLarge});
  }
  if (session.devices > 1) {
    measure_all(session, true);
    measure_all(session, false);
    measure_copy(session, first, {1}, kSweep);
  }
  for (int from = 0; from < session.devices; ++from) {
    for (int to = 0; to < session.devices; ++to) {
      if (from == to) continue;
      measure_copy(session, {from}, {to}, {kLarge});
      if (from < to) measure_both(session, {from}, {to});
    }
  }
  add_fits(session.report, "cuda.copy");
}

}  // namespace railyard::probe
