// Threads that carry their first exception to whoever joins them.
#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace railyard::probe {

class Threads {
 public:
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { wait(); }

  void start(std::function<void()> body) {
    threads_.emplace_back([this, body = std::move(body)] {
      try {
        body();
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
    });
  }

  // Rethrows the first exception that one of them ended with.
  void join() {
    wait();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void wait() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace railyard::probe
