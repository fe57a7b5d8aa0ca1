// Any bytes as NCCL graph XML: graphs or a one-line error; graphs are written and read back the
// same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/result.h"
#include "topologies/import/graph_xml.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_one_line(const std::string& text) {
  require(!text.empty());
  require(text.find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace topologies = railyard::topologies;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto numbers :
       {topologies::DevNumbers::hexadecimal, topologies::DevNumbers::decimal}) {
    topologies::ImportNotes notes;
    const auto file =
        topologies::parse_graph_xml(text, "fuzz", {.numbers = numbers, .notes = &notes});
    for (const std::string& note : notes.lines()) require_one_line(note);
    if (!file.ok()) {
      require_one_line(file.error().text());
      continue;
    }
    if (file.value().has_ranks) continue;  // ranks need their device numbers to be written
    const std::string written = topologies::write_graph_xml(file.value().graphs);
    const auto again = topologies::parse_graph_xml(written, "again");
    require(again.ok());
    require(topologies::write_graph_xml(again.value().graphs) == written);
  }
  return 0;
}
