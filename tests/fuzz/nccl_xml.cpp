// Any bytes as NCCL topology XML: hardware or a one-line error comes back. Hardware is written and
// read back the same, checked, and made a machine; of a machine a cluster can be built.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/result.h"
#include "topologies/cluster.h"
#include "topologies/hardware_check.h"
#include "topologies/hardware_machine.h"
#include "topologies/import/importer.h"
#include "topologies/import/nccl_xml.h"
#include "topologies/machine_hardware.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_one_line(const std::string& text) {
  require(!text.empty());
  require(text.find('\n') == std::string::npos);
}

void exercise(const railyard::topologies::ImportedMachine& imported) {
  namespace topologies = railyard::topologies;
  for (const std::string& assumption : imported.assumptions) require_one_line(assumption);
  require(topologies::hardware_of(imported.machine).ok());
  if (imported.hosts > 64) return;  // large, and nothing new
  topologies::ClusterSpec spec;
  spec.custom = imported.machine;
  spec.nodes = imported.hosts;
  spec.fabric.kind = imported.machine.nics.empty() ? topologies::FabricKind::none
                                                   : topologies::FabricKind::one_switch;
  require(topologies::build(spec).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace topologies = railyard::topologies;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  topologies::ImportNotes notes;
  const auto hardware = topologies::parse_nccl_xml(text, "fuzz", &notes);
  for (const std::string& note : notes.lines()) require_one_line(note);
  const auto imported = topologies::import_text(text, "fuzz", {});
  if (!imported.ok()) require_one_line(imported.error().text());
  if (!hardware.ok()) {
    require_one_line(hardware.error().text());
    return 0;
  }
  const std::string written = topologies::write_nccl_xml(hardware.value());
  const auto again = topologies::parse_nccl_xml(written, "again");
  require(again.ok());
  require(topologies::write_nccl_xml(again.value()) == written);
  for (const topologies::Finding& finding : topologies::check_hardware(hardware.value()))
    require_one_line(finding.where + finding.what);
  const auto machine = topologies::machine_of(hardware.value());
  if (machine.ok()) {
    exercise(machine.value());
  } else {
    require_one_line(machine.error().text());
  }
  return 0;
}
