#include "tools/cli/nccl_plan.h"

#include <algorithm>

namespace railyard::cli {

using algorithms::nccl::Call;
using algorithms::nccl::Choice;
using algorithms::nccl::Function;

std::vector<std::int64_t> plan_sizes() {
  std::vector<std::int64_t> sizes;
  constexpr std::int64_t kFirst = 8;
  constexpr std::int64_t kLast = std::int64_t{16} << 30;
  for (std::int64_t size = kFirst; size <= kLast; size *= 2) sizes.push_back(size);
  return sizes;
}

// nccl-tests divides the size among the ranks where a collective does; less than an element each is
// one element each.
Call call_of_size(const NcclPlan& plan, Function function, std::int64_t size) {
  const std::int64_t element = algorithms::nccl::size_of(plan.type);
  const std::int64_t share = algorithms::nccl::is_gather_or_scatter(function)
                                 ? element * plan.cluster.comm.info.ranks
                                 : element;
  return {
      .function = function, .count = std::max<std::int64_t>(1, size / share), .type = plan.type};
}

namespace {

bool same_choice(const ChoiceRange& range, const ChoiceRange& other) {
  if (range.function != other.function || range.error != other.error) return false;
  if (!range.choice || !other.choice) return range.choice.has_value() == other.choice.has_value();
  return range.choice->algorithm == other.choice->algorithm &&
         range.choice->protocol == other.choice->protocol &&
         range.choice->max_channels == other.choice->max_channels;
}

}  // namespace

std::vector<ChoiceRange> choice_ranges(const NcclPlan& plan) {
  constexpr Function kOrder[] = {Function::all_reduce, Function::all_gather,
                                 Function::reduce_scatter, Function::broadcast, Function::reduce};
  std::vector<ChoiceRange> ranges;
  for (const Function function : kOrder)
    for (const std::int64_t size : plan_sizes()) {
      const auto choice = choose(plan.cluster.comm, call_of_size(plan, function, size));
      ChoiceRange range{function, size, size, std::nullopt, {}};
      if (choice.ok()) {
        range.choice = choice.value();
      } else {
        range.error = choice.error().message;
      }
      if (!ranges.empty() && same_choice(ranges.back(), range)) {
        ranges.back().last = size;
      } else {
        ranges.push_back(std::move(range));
      }
    }
  return ranges;
}

}  // namespace railyard::cli
