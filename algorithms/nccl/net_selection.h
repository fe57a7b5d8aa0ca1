// NetSelection: NCCL_IB_HCA, the list of network devices to use: [^][=]name[:port][,...]. A name
// stands for all devices that begin with it, after '=' for itself alone; '^' excludes. What is left
// is numbered anew in the old order, as the plugin does. An empty list is no list.
//
//   NetSelection selection(env);                      // must outlive what it returns
//   build_system(selection.apply(inputs));
#pragma once

#include <list>
#include <string>
#include <vector>

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/system.h"

namespace railyard::algorithms::nccl {

class NetSelection {
 public:
  explicit NetSelection(const Environment& environment);
  // The same hosts with the devices wanted; without a list `inputs` itself.
  NodeInputs apply(const NodeInputs& inputs);

 private:
  struct Name {
    std::string text;
    std::int32_t port = -1;  // any
  };
  [[nodiscard]] bool wanted(const sim::HardwareNet& net) const;
  [[nodiscard]] sim::Hardware selected(const sim::Hardware& hardware) const;

  std::vector<Name> names_;
  bool exclude_ = false;
  bool exact_ = false;
  std::list<sim::Hardware> changed_;  // addresses stay
};

}  // namespace railyard::algorithms::nccl
