// Any bytes as `nvidia-smi topo -m`: a matrix that holds its invariants, whose PCI tree can be
// made, or a one-line error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "topologies/import/smi_topo.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_one_line(const std::string& text) {
  require(!text.empty() && text.find('\n') == std::string::npos);
}

std::size_t devices_below(const railyard::sim::HardwarePci& pci) {
  std::size_t count = (pci.gpu ? 1 : 0) + pci.nics.size();
  for (const auto& child : pci.children) count += devices_below(child);
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace topologies = railyard::topologies;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  topologies::looks_like_smi_topo(text);
  const auto parsed = topologies::parse_smi_topo(text, "fuzz");
  if (!parsed.ok()) {
    require_one_line(parsed.error().text());
    return 0;
  }
  const topologies::SmiMatrix& matrix = parsed.value();
  const std::size_t n = matrix.labels.size();
  require(matrix.gpus > 0 && matrix.gpus <= n && matrix.cells.size() == n * n);
  require(matrix.affinity.size() == matrix.gpus && matrix.nic_devices.size() == matrix.nics());
  for (std::size_t i = 0; i < n; ++i) require(matrix.cell(i, i).path == topologies::SmiPath::self);
  require_one_line(topologies::summary(matrix));
  for (const std::string& line : topologies::check(matrix)) require_one_line(line);
  for (const std::string& line : matrix.notes) require_one_line(line);
  const topologies::SmiHardware built = topologies::hardware_of(matrix);
  std::size_t devices = 0;
  for (const auto& cpu : built.hardware.cpus)
    for (const auto& pci : cpu.pci) devices += devices_below(pci);
  require(devices == n);
  for (const std::string& line : built.unknowns) require_one_line(line);
  return 0;
}
