#include "tools/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/cli/format.h"

namespace railyard::cli {
namespace {

constexpr std::chrono::milliseconds kFirst{2000};
constexpr std::chrono::milliseconds kInterval{250};

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine(std::string what, bool quiet)
    : what_(std::move(what)), on_(!quiet && isatty(STDERR_FILENO) == 1) {}

void ProgressLine::update(double share) {
  if (!on_) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now - start_ < kFirst || (shown_ && now - last_ < kInterval)) return;
  shown_ = true;
  last_ = now;
  put("\r" + progress_text(what_, share, elapsed_seconds()) + "\033[K");
}

void ProgressLine::clear() {
  const std::lock_guard lock(mutex_);
  if (!shown_) return;
  put("\r\033[K");
  shown_ = false;
}

double ProgressLine::elapsed_seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

std::string share_text(double events, double estimated) {
  if (estimated > 0 && events <= estimated)
    return fmt::format("about {} of the estimate", percent(events / estimated));
  return fmt::format("more than the {} that were estimated",
                     count(static_cast<std::int64_t>(estimated)));
}

std::string progress_text(const std::string& what, double share, double elapsed_seconds) {
  const double done = std::clamp(share, 0.0, 1.0);
  std::string text =
      fmt::format("{} {:3.0f} %  {} so far", what, done * 100, human_seconds(elapsed_seconds));
  // An estimate from the first per cent would jump about.
  if (done >= 0.01)
    text += fmt::format(", about {} to go", human_seconds(elapsed_seconds * (1 - done) / done));
  return text;
}

}  // namespace railyard::cli
