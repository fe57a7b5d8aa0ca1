#include <memory>

#include "calibrate/probes/cuda/kernels.h"
#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

constexpr int kOrder = 4096;                  // of the matrices
constexpr std::size_t kSlice = 8388608;       // of each block of a copy without end
constexpr unsigned kMostRounds = 10000;       // ends it after seconds, whatever happens
constexpr std::size_t kCopyBytes = 67108864;  // of each copy by engine
constexpr int kQueued = 600;

struct Matrices {
  Matrices() {
    const std::size_t elements = std::size_t{kOrder} * kOrder;
    a = Buffer::on_device(0, elements * 2);
    b = Buffer::on_device(0, elements * 2);
    c = Buffer::on_device(0, elements * 4);
    // Zeros would draw too little power to be like work: 0x3c3c is about 1.06.
    PROBE_CUDA(cudaMemset(a.as<void>(), 0x3c, elements * 2));
    PROBE_CUDA(cudaMemset(b.as<void>(), 0x3c, elements * 2));
    PROBE_CUDA(cudaDeviceSynchronize());
  }
  Buffer a, b, c;
};

Summary time_product(const Session& session, const Matrices& matrices, const Stream& stream) {
  return time_on_device(stream, session.effort, [&] {
    launch_gemm(matrices.a.as<void>(), matrices.b.as<void>(), matrices.c.as<void>(), kOrder,
                stream);
  });
}

void add(Session& session, const Labels& labels, const Summary& time, double alone) {
  session.report.rows.push_back({"cuda.gemm", labels, kOrder, 0, time, {}, ""});
  if (alone > 0)
    session.report.rows.push_back(
        {"cuda.slowdown", labels, 0, 0, {}, time.median / alone, "ratio"});
}

// A copy kernel that runs from construction to stop(), or to its end at the latest.
class EndlessCopy {
 public:
  EndlessCopy(int to, int blocks)
      : from_(Buffer::on_device(0, kSlice * static_cast<std::size_t>(blocks))),
        to_(Buffer::on_device(to, kSlice * static_cast<std::size_t>(blocks))),
        stop_(Buffer::on_host(sizeof(unsigned))),
        stream_(0) {
    launch_endless_copy({blocks, 512, stream_}, {from_.as<void>(), to_.as<void>(), kSlice,
                                                 stop_.in_kernel<unsigned>(), kMostRounds});
  }
  ~EndlessCopy() {
    __atomic_store_n(stop_.as<unsigned>(), 1U, __ATOMIC_SEQ_CST);
    cudaStreamSynchronize(stream_);
  }
  EndlessCopy(const EndlessCopy&) = delete;
  EndlessCopy& operator=(const EndlessCopy&) = delete;
  [[nodiscard]] bool running() const { return cudaStreamQuery(stream_) == cudaErrorNotReady; }

 private:
  Buffer from_, to_, stop_;
  Stream stream_;
};

// Copies by engine, queued for longer than the products take.
class QueuedCopies {
 public:
  QueuedCopies(bool to_device)
      : host_(Buffer::on_host(kCopyBytes)), device_(Buffer::on_device(0, kCopyBytes)), stream_(0) {
    void* from = to_device ? host_.as<void>() : device_.as<void>();
    void* to = to_device ? device_.as<void>() : host_.as<void>();
    for (int i = 0; i < kQueued; ++i)
      PROBE_CUDA(cudaMemcpyAsync(to, from, kCopyBytes, cudaMemcpyDefault, stream_));
  }
  ~QueuedCopies() { cudaStreamSynchronize(stream_); }
  QueuedCopies(const QueuedCopies&) = delete;
  QueuedCopies& operator=(const QueuedCopies&) = delete;
  [[nodiscard]] bool running() const { return cudaStreamQuery(stream_) == cudaErrorNotReady; }

 private:
  Buffer host_, device_;
  Stream stream_;
};

template <typename Copy, typename... Arguments>
void measure_during(Session& session, const Matrices& matrices, double alone, const Labels& labels,
                    Arguments... arguments) {
  std::string name = "products during copies";
  for (const auto& [key, value] : labels) name += ", " + key + " " + value;
  session.run_cell(name, [&] {
    const Stream stream(0);
    const Copy copy(arguments...);
    const Summary time = time_product(session, matrices, stream);
    if (!copy.running()) throw ProbeError("the copies ended before the products did");
    add(session, labels, time, alone);
  });
}

}  // namespace

void measure_interference(Session& session) {
  session.run_cell("products", [&] {
    const OnDevice here(0);
    const Matrices matrices;
    const Stream stream(0);
    const Summary alone = time_product(session, matrices, stream);
    add(session, {{"during", "nothing"}}, alone, 0);
    for (const int blocks : {1, 4, 8, 16, 32, 64}) {
      const std::string count = std::to_string(blocks);
      measure_during<EndlessCopy>(session, matrices, alone.median,
                                  {{"during", "kernel"}, {"blocks", count}, {"to", "0"}}, 0,
                                  blocks);
      if (session.devices > 1 && session.connected(0, 1))
        measure_during<EndlessCopy>(session, matrices, alone.median,
                                    {{"during", "kernel"}, {"blocks", count}, {"to", "1"}}, 1,
                                    blocks);
    }
    measure_during<QueuedCopies>(session, matrices, alone.median,
                                 {{"during", "engine"}, {"from", "host"}, {"to", "0"}}, true);
    measure_during<QueuedCopies>(session, matrices, alone.median,
                                 {{"during", "engine"}, {"from", "0"}, {"to", "host"}}, false);
  });
}

}  // namespace railyard::probe
