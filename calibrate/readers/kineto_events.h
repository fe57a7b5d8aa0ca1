// The events of a Chrome trace, one after the other, out of a JSON text of any size.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/result.h"

namespace railyard::calibrate {

// Plain values of one event: its own fields, and those of "args" under "args.NAME". Numbers as
// written in the file, arrays and objects deeper down are left out.
struct TraceEvent {
  std::map<std::string, std::string, std::less<>> values;

  [[nodiscard]] std::string_view text(std::string_view key) const;  // empty if absent
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  // A time in microseconds, with or without a fraction, as nanoseconds: more digits than a double.
  [[nodiscard]] std::optional<std::int64_t> nanoseconds(std::string_view key) const;
  // Start and end of an event, from "ts" and "dur": at most a day apart, and such as can be added
  // and subtracted without overflow.
  [[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> times() const;
};

struct TraceSink {
  std::function<void(const TraceEvent&)> event;
  // Plain values outside of traceEvents: ("distributedInfo.rank", "0"); elements of arrays carry
  // their index: ("deviceProperties.0.name", "NVIDIA A100").
  std::function<void(std::string_view path, std::string_view value)> value;
};

// False in the value: the JSON has no "traceEvents".
sim::Result<bool> read_trace_events(std::string_view text, const std::string& name,
                                    const TraceSink& sink);

}  // namespace railyard::calibrate
