// Profiler traces made by hand: microseconds, one host thread unless said otherwise.
#pragma once

#include <fmt/format.h>

#include <string>

namespace railyard::tests::traces {

class MadeTrace {
 public:
  // A host call that launches, and what it launched.
  MadeTrace& kernel(double launch, double start, double duration, const std::string& name,
                    int stream = 7, double call = 1) {
    return activity("kernel", launch, start, duration, name, stream, call, "");
  }
  MadeTrace& copy(double launch, double start, double duration, std::int64_t bytes,
                  int stream = 7) {
    return activity("gpu_memcpy", launch, start, duration, "Memcpy DtoD", stream, 1,
                    fmt::format(",\"bytes\":{}", bytes));
  }
  MadeTrace& collective(double launch, double start, double duration, const std::string& name,
                        std::int64_t elements, const std::string& group = "0",
                        const std::string& ranks = "[0, 1]", int size = 2) {
    const std::int64_t out = name == "_allgather_base" ? elements * size : elements;
    return activity("kernel", launch, start, duration, "ncclDevKernel_" + name + "(x)", 20, 1,
                    fmt::format(R"(,"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},)"
                                R"("Group size":{},"dtype":"Float","Process Group Name":"{}",)"
                                R"("Process Group Ranks":"{}")",
                                name, elements, out, size, group, ranks));
  }
  MadeTrace& host(double start, double duration, const std::string& name) {
    return event("cuda_runtime", start, duration, name, "\"args\":{}");
  }
  MadeTrace& op(double start, double duration, const std::string& name, int sequence = -1) {
    return event("cpu_op", start, duration, name,
                 sequence < 0 ? std::string("\"args\":{}")
                              : fmt::format("\"args\":{{\"Sequence number\":{}}}", sequence));
  }
  MadeTrace& range(double start, double duration, const std::string& name) {
    return event("user_annotation", start, duration, name, "\"args\":{}");
  }
  // The engine's call of a function, and the function.
  MadeTrace& backward(double start, double duration, const std::string& name, int sequence = -1) {
    op(start, duration, "autograd::engine::evaluate_function: " + name, sequence);
    return op(start + 0.1, duration - 0.2, name, sequence);
  }
  [[nodiscard]] std::string text(const std::string& head = kHead) const {
    return "{" + head + ",\"traceEvents\":[" + events_ + "]}";
  }

  static constexpr const char* kHead =
      R"("schemaVersion":1,"deviceProperties":[{"name":"NVIDIA A100-SXM4-40GB"}],)"
      R"("distributedInfo":{"backend":"nccl","rank":0,"world_size":2})";

 private:
  MadeTrace& event(const std::string& category, double start, double duration,
                   const std::string& name, const std::string& rest) {
    events_ += fmt::format(
        R"({}{{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":1,"ts":{:.3f},"dur":{:.3f},{}}})",
        events_.empty() ? "" : ",", category, name, start, duration, rest);
    return *this;
  }
  MadeTrace& activity(const std::string& category, double launch, double start, double duration,
                      const std::string& name, int stream, double call, const std::string& more) {
    ++correlation_;
    if (launch >= 0)
      event("cuda_runtime", launch, call, "cudaLaunchKernel",
            fmt::format("\"args\":{{\"correlation\":{}}}", correlation_));
    return event(category, start, duration, name,
                 fmt::format("\"args\":{{\"device\":0,\"stream\":{},\"correlation\":{}{}}}", stream,
                             correlation_, more));
  }

  std::string events_;
  int correlation_ = 0;
};

}  // namespace railyard::tests::traces
