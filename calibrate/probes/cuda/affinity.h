// Runs this thread on the processors next to a GPU, so that host memory allocated meanwhile lies
// on that GPU's side of the machine. Where the kernel does not say which those are, nothing
// changes.
#pragma once

#include <sched.h>

#include <optional>

#include "calibrate/probes/common/processors.h"

namespace railyard::probe {

class NearDevice {
 public:
  explicit NearDevice(int device);  // a negative device: nothing to be near to
  ~NearDevice();
  NearDevice(const NearDevice&) = delete;
  NearDevice& operator=(const NearDevice&) = delete;

 private:
  std::optional<cpu_set_t> previous_;
};

}  // namespace railyard::probe
