// Any bytes as an NCCL log: a value or a one-line error comes back, whatever is kept is consistent,
// and reading takes time in proportion to the input.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "calibrate/readers/nccl_log.h"
#include "calibrate/readers/nccl_log_summary.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace nccl_log = railyard::calibrate::nccl_log;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = nccl_log::read_text(text, "fuzz", {.max_calls = 100});
  if (!result.ok()) {
    require(result.error().text().find('\n') == std::string_view::npos);
    return 0;
  }
  const nccl_log::Log& log = result.value();
  require(log.counts.facts + log.counts.torn <= log.counts.messages);
  require(log.calls.size() <= 100 && log.choices.size() <= 100);
  std::size_t members = 0;
  for (const nccl_log::Communicator& communicator : log.communicators)
    members += communicator.members.size();
  require(members == log.ranks.size());
  for (const nccl_log::Rank& rank : log.ranks) {
    require(rank.process < log.processes.size());
    require(rank.communicator < log.communicators.size());
    if (!rank.system) continue;
    for (std::size_t i = 0; i < rank.system->nodes.size(); ++i) {
      const std::size_t parent = rank.system->nodes[i].parent;
      require(parent == nccl_log::kNone || parent < i);
    }
  }
  for (const nccl_log::Call& call : log.calls) require(call.rank < log.ranks.size());
  for (const nccl_log::Choice& choice : log.choices) require(choice.rank < log.ranks.size());
  require(!nccl_log::summary(log).empty());
  return 0;
}
