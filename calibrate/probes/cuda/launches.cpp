#include "calibrate/probes/cuda/kernels.h"
#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {
namespace {

constexpr int kGraphKernels = 100;
constexpr int kInFlight = 100;  // well below what the driver queues before it blocks

class Graph {
 public:
  Graph(const Stream& stream, int kernels) {
    PROBE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; ++i) launch_empty({1, 32, stream});
    PROBE_CUDA(cudaStreamEndCapture(stream, &graph_));
    PROBE_CUDA(cudaGraphInstantiateWithFlags(&executable_, graph_, 0));
  }
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream) const { PROBE_CUDA(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

void add(Session& session, const char* kind, const Summary& time) {
  session.report.rows.push_back({kind, {{"device", "0"}}, 0, 0, time, {}, ""});
}

// Every value of `time` divided by n: one of n things that were timed together.
Summary each_of(Summary time, double n) {
  for (double* value : {&time.median, &time.p10, &time.p90, &time.min, &time.max}) *value /= n;
  return time;
}

// Host time of one `call` of many, waiting in between so that the queue never fills.
Summary time_calls(Session& session, const Stream& stream, const std::function<void()>& call) {
  std::vector<double> samples;
  for (std::int64_t i = 0; i < session.effort.most_samples + 1; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (int n = 0; n < kInFlight; ++n) call();
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    stream.wait();
    if (i > 0) samples.push_back(time.count() / kInFlight);  // the first is a warm-up
  }
  return summarize(samples);
}

}  // namespace

void measure_launches(Session& session) {
  const OnDevice here(0);
  const Stream stream(0);
  const auto empty = [&] { launch_empty({1, 32, stream}); };
  session.run_cell("launches", [&] {
    add(session, "cuda.launch_call", time_calls(session, stream, empty));
    add(session, "cuda.launch_interval", time_on_device(stream, session.effort, empty));
    add(session, "cuda.launch_wait", time_on_host(session.effort, [&] {
          empty();
          stream.wait();
        }));
  });
  session.run_cell("events", [&] {
    const Event event(0);
    const auto record = [&] { PROBE_CUDA(cudaEventRecord(event, stream)); };
    add(session, "cuda.event_record", time_calls(session, stream, record));
    add(session, "cuda.event_interval", time_on_device(stream, session.effort, record));
  });
  session.run_cell("graphs", [&] {
    const Graph one(stream, 1), many(stream, kGraphKernels);
    add(session, "cuda.graph_call", time_calls(session, stream, [&] { one.launch(stream); }));
    const Summary all = time_on_device(stream, session.effort, [&] { many.launch(stream); });
    add(session, "cuda.graph_interval", each_of(all, kGraphKernels));
  });
}

}  // namespace railyard::probe
