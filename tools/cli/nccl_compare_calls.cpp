#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "sim/enum_table.h"
#include "tools/cli/nccl_compare_parts.h"

namespace railyard::cli::compare_parts {
namespace {

// The call that a choice was made for: the one before it, or one of as many bytes of its function,
// with a type and a reduction that every algorithm has.
std::optional<NcclPrediction::Call> call_of(const log::Log& log, const log::Choice& choice) {
  if (!choice.function || static_cast<std::size_t>(*choice.function) >= log::kTunedFunctions)
    return std::nullopt;
  if (choice.call != log::kNone) {
    const log::Call& call = log.calls[choice.call];
    return NcclPrediction::Call{call.function, call.count, call.datatype, call.op, call.root};
  }
  constexpr std::int64_t kFloat = 7, kFloatBytes = 4, kSum = 0;
  if (choice.bytes % kFloatBytes != 0) return std::nullopt;
  return NcclPrediction::Call{*choice.function, choice.bytes / kFloatBytes, kFloat, kSum, 0};
}

std::string describe(const NcclPrediction::Choice& choice) {
  return fmt::format("{}/{}", sim::to_text(choice.algorithm), sim::to_text(choice.protocol));
}

struct ChoiceTallies {
  Tally algorithms{"algorithm and protocol"}, channels{"channels of a call"},
      times{"NCCL's estimates"};
};

void compare_choice(const std::string& what, const NcclPrediction::Choice& planned,
                    const log::Choice& logged, ChoiceTallies& tallies) {
  const std::string mine = describe(planned);
  const std::string theirs = describe(NcclPrediction::Choice{*logged.algorithm, *logged.protocol});
  tallies.algorithms.add(mine == theirs, [&] {
    return Difference{what, mine, theirs, logged.line};
  });
  if (mine != theirs) return;  // the rest follows from it
  if (logged.first_channel >= 0 && planned.first_channel >= 0) {
    tallies.channels.add(
        logged.first_channel == planned.first_channel &&
            logged.last_channel == planned.last_channel,
        [&] {
          return Difference{
              what, fmt::format("{}..{}", planned.first_channel, planned.last_channel),
              fmt::format("{}..{}", logged.first_channel, logged.last_channel), logged.line};
        });
  }
  if (logged.time >= 0 && planned.time >= 0) {
    // NCCL prints a float with %f; one part in 10^5 covers the last digits of its arithmetic.
    const bool same = std::abs(logged.time - planned.time) <= 1e-5 * std::abs(logged.time);
    tallies.times.add(same, [&] {
      return Difference{what, fmt::format("{:.6f}", planned.time),
                        fmt::format("{:.6f}", logged.time), logged.line};
    });
  }
}

}  // namespace

void compare_tuning(const Context& context, Comparison& comparison) {
  Tally tally("cost table"), threads("threads");
  const auto& planned = context.plan.tuning;
  const auto& logged = context.communicator.tuning;
  if (!planned || !logged) return;
  const auto text = [](const log::TuningCell& cell) {  // as NCCL prints it
    return fmt::format("{:.1f}/{:.1f}", cell.latency, cell.bandwidth);
  };
  for (std::size_t a = 0; a < log::kAlgorithms; ++a) {
    for (std::size_t p = 0; p < log::kProtocols; ++p) {
      const std::string of = fmt::format("{} {}", sim::to_text(static_cast<log::Algorithm>(a)),
                                         sim::to_text(static_cast<log::Protocol>(p)));
      threads.add_number("most threads of " + of, planned->max_threads[a][p].value_or(-1),
                         logged->max_threads[a][p].value_or(-1), logged->line);
      for (std::size_t f = 0; f < log::kTunedFunctions; ++f) {
        if (!logged->cells[f][a][p]) continue;
        const log::TuningCell mine = planned->cells[f][a][p].value_or(log::TuningCell{});
        const log::TuningCell theirs = *logged->cells[f][a][p];
        tally.add(text(mine) == text(theirs), [&] {
          return Difference{fmt::format("{} {}", sim::to_text(static_cast<log::Function>(f)), of),
                            text(mine), text(theirs), logged->line};
        });
      }
    }
  }
  tally.move_to(comparison);
  threads.move_to(comparison);
}

void compare_choices(const Context& context, Comparison& comparison) {
  if (!context.plan.choose) return;
  ChoiceTallies tallies;
  using Key = std::tuple<log::Function, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, sim::Result<NcclPrediction::Choice>> known;
  for (const log::Choice& logged : context.log.choices) {
    if (logged.rank == log::kNone ||
        &context.log.communicators[context.log.ranks[logged.rank].communicator] !=
            &context.communicator)
      continue;
    const auto call = call_of(context.log, logged);
    if (!call || !logged.algorithm || !logged.protocol) {
      tallies.algorithms.skip();
      continue;
    }
    const Key key{call->function, call->count, call->datatype, call->op, call->root};
    auto found = known.find(key);
    if (found == known.end()) found = known.emplace(key, context.plan.choose(*call)).first;
    const std::string what =
        fmt::format("{} of {} bytes", sim::to_text(call->function), logged.bytes);
    if (!found->second.ok()) {
      tallies.algorithms.add(false, [&] {
        const NcclPrediction::Choice theirs{*logged.algorithm, *logged.protocol};
        return Difference{what, found->second.error().text(), describe(theirs), logged.line};
      });
      continue;
    }
    compare_choice(what, found->second.value(), logged, tallies);
  }
  tallies.algorithms.move_to(comparison);
  tallies.channels.move_to(comparison);
  tallies.times.move_to(comparison);
}

}  // namespace railyard::cli::compare_parts
