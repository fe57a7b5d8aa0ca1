#include "calibrate/probes/cuda/affinity.h"

#include <fstream>

#include "calibrate/probes/cuda/session.h"

namespace railyard::probe {

NearDevice::NearDevice(int device) {
  if (device < 0) return;
  std::ifstream file("/sys/bus/pci/devices/" + pci_bus_id(device) + "/local_cpulist");
  std::string list;
  std::getline(file, list);
  const std::optional<cpu_set_t> near = parse_processors(list);
  cpu_set_t current;
  if (!near || sched_getaffinity(0, sizeof current, &current) != 0) return;
  if (sched_setaffinity(0, sizeof *near, &*near) == 0) previous_ = current;
}

NearDevice::~NearDevice() {
  if (previous_) sched_setaffinity(0, sizeof *previous_, &*previous_);
}

}  // namespace railyard::probe
