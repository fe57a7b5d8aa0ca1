// What the parts of nccl_compare share. Not for others.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tools/cli/nccl_compare.h"

namespace railyard::cli::compare_parts {

namespace log = calibrate::nccl_log;

// Collects the facts of one kind.
class Tally {
 public:
  explicit Tally(std::string kind) { agreement_.kind = std::move(kind); }

  void add(bool agrees, const std::function<Difference()>& difference) {
    if (agrees) {
      ++agreement_.agreed;
      return;
    }
    ++agreement_.differed;
    if (agreement_.first.size() < kDifferencesShown) agreement_.first.push_back(difference());
  }
  void add_number(const std::string& what, std::int64_t planned, std::int64_t logged,
                  log::Line line) {
    if (planned < 0 || logged < 0) return;
    add(planned == logged, [&] {
      return Difference{what, std::to_string(planned), std::to_string(logged), line};
    });
  }
  void skip() { ++agreement_.not_comparable; }

  void move_to(Comparison& comparison) {
    if (agreement_.agreed + agreement_.differed + agreement_.not_comparable > 0)
      comparison.kinds.push_back(std::move(agreement_));
  }

 private:
  Agreement agreement_;
};

struct Context {
  const NcclPrediction& plan;
  const log::Log& log;
  const log::Communicator& communicator;
};

// Numbers, the first few.
template <typename Numbers>
std::string list(const Numbers& numbers) {
  constexpr std::size_t kShown = 24;
  std::string text;
  std::size_t shown = 0;
  for (const auto number : numbers) {
    if (shown++ == kShown) return text + " ...";
    if (!text.empty()) text += ' ';
    text += std::to_string(number);
  }
  return text;
}

// nccl_compare_channels.cpp
void compare_rings(const Context& context, Comparison& comparison);
void compare_trees(const Context& context, Comparison& comparison);
void compare_heads(const Context& context, Comparison& comparison);
void compare_transports(const Context& context, Comparison& comparison);
// nccl_compare_calls.cpp
void compare_tuning(const Context& context, Comparison& comparison);
void compare_choices(const Context& context, Comparison& comparison);

}  // namespace railyard::cli::compare_parts
