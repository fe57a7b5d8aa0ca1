// Unicast forwarding tables of InfiniBand switches: for every destination LID the port to leave by.
// Read from `dump_fts`, `dump_lfts` and `ibroute` (one or all switches), opensm's `opensm.fdbs` and
// `opensm-lfts.dump`; several texts add up.
//
// Invariants: one table a switch, entries ascending by LID, one an entry. 0 is the switch itself;
// an entry told UNREACHABLE (255, or by word) is left out.
//
// Refused, with the line: a malformed entry, one outside a table, a LID twice with two ports, a
// second table of a switch that differs, a text without a table.
//
// Cost: O(text log text).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/result.h"

namespace railyard::topologies {

struct ForwardingEntry {
  std::uint16_t lid = 0;
  std::uint8_t port = 0;
  friend bool operator==(const ForwardingEntry&, const ForwardingEntry&) = default;
};

struct SwitchTable {
  std::uint64_t guid = 0;
  std::string name;  // may be empty
  std::vector<ForwardingEntry> entries;
  std::size_t line = 0;

  [[nodiscard]] std::optional<std::uint8_t> port(std::uint16_t lid) const;
};

struct ForwardingTables {
  std::vector<SwitchTable> switches;                     // in the order they were read
  std::unordered_map<std::uint64_t, std::size_t> index;  // GUID -> place in `switches`
  std::size_t unreachable = 0;                           // entries that were left out
  std::size_t lids_per_port = 1;                         // the most that `dump_fts` tells
  std::vector<std::string> notes;

  [[nodiscard]] const SwitchTable* find(std::uint64_t guid) const;
};

bool looks_like_forwarding_tables(std::string_view text);
// Adds the tables of a text to `out`.
sim::Result<void> parse_forwarding_tables(std::string_view text, const std::string& name,
                                          ForwardingTables& out);
// "12 switches, 528 entries"
std::string summary(const ForwardingTables& tables);

}  // namespace railyard::topologies
