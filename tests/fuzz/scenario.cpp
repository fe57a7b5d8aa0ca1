// Any bytes as a scenario or a profile: a value or a one-line error comes back, nothing is thrown.
//
// yaml-cpp 0.7 crashes or hangs on some inputs by itself; what is refused before or during parsing
// (scenarios/document.h) keeps it from them: unbounded recursion on nested flow and block
// collections (kMaxDepth, checked at each level before the parser enters it), aliases that expand
// exponentially (kMaxNodes), bytes that are not UTF-8 text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "models/nn/network.h"
#include "scenarios/profile.h"
#include "scenarios/scenario.h"
#include "sim/result.h"
#include "topologies/machine.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_one_line(const railyard::sim::Error& error) {
  require(!error.message.empty());
  require(error.text().find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace scenarios = railyard::scenarios;
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  const auto scenario = scenarios::scenario_from_text(text, "fuzz", {.read_files = false});
  if (scenario.ok()) {
    const std::string resolved = scenarios::resolved_yaml(scenario.value());
    const auto again = scenarios::scenario_from_text(resolved, "again", {.read_files = false});
    require(again.ok());
    require(scenarios::resolved_yaml(again.value()) == resolved);
  } else {
    require_one_line(scenario.error());
  }

  const auto profile = scenarios::profile_from_text(text, "fuzz", false);
  if (!profile.ok()) require_one_line(profile.error());

  // The start of the text as a --set of the smallest scenario.
  const std::string_view set = text.substr(0, text.find('\n'));
  const auto changed = scenarios::scenario_from_text(
      "railyard: 1\ncluster: {machine: flat, nodes: 2}\n"
      "traffic: {pattern: all-to-all, size: 1MiB}\n",
      "base", {.sets = {std::string(set)}, .read_files = false});
  if (!changed.ok()) require_one_line(changed.error());
  return 0;
}
