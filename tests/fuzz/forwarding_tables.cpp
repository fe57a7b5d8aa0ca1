// Any bytes as forwarding tables: tables that hold their invariants, or a one-line error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "topologies/import/forwarding_tables.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace topologies = railyard::topologies;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool looks = topologies::looks_like_forwarding_tables(text);
  topologies::ForwardingTables tables;
  const auto done = topologies::parse_forwarding_tables(text, "fuzz", tables);
  require(looks || !done.ok());
  if (!done.ok()) {
    require(done.error().text().find('\n') == std::string::npos);
    return 0;
  }
  for (const topologies::SwitchTable& table : tables.switches) {
    require(tables.find(table.guid) == &table);
    for (std::size_t i = 0; i < table.entries.size(); ++i) {
      require(i == 0 || table.entries[i - 1].lid < table.entries[i].lid);
      require(table.port(table.entries[i].lid) == table.entries[i].port);
    }
  }
  for (const std::string& note : tables.notes) require(note.find('\n') == std::string::npos);
  require(topologies::summary(tables).find('\n') == std::string::npos);
  return 0;
}
