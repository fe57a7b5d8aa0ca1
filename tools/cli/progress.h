// One line on the terminal for work that takes more than two seconds: share done and time to go.
// Nothing is printed where standard error is no terminal, or quiet. May be used by several threads.
//
//   ProgressLine progress("simulating", quiet);
//   progress.update(0.4);   // "simulating  40 %  about 12 s to go"
//   progress.clear();       // before anything else is printed; the destructor does it too
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace railyard::cli {

class ProgressLine {
 public:
  ProgressLine(std::string what, bool quiet);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(double share);
  void clear();
  [[nodiscard]] double elapsed_seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  bool on_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  std::mutex mutex_;
};

// How far a run came that stopped; a share of an estimate that it has passed says nothing.
std::string share_text(double events, double estimated);

// The line's text. Beside the class for tests.
std::string progress_text(const std::string& what, double share, double elapsed_seconds);

}  // namespace railyard::cli
