// A flow as whoever starts it sees it: the resources that it uses, and who hears of its end. How
// flows share resources is defined in network.h.
//
//   network.add_flow({.uses = uses, .cap = 25_GBps, .listener = this, .tag = connection});
#pragma once

#include <cstdint>
#include <span>

#include "sim/ids.h"
#include "sim/units.h"

namespace railyard::sim {

struct ResourceUse {
  ResourceId resource;
  std::uint32_t weight = 1;
};

class FlowListener {
 public:
  virtual ~FlowListener() = default;
  virtual void on_flow_done(std::uint32_t tag) = 0;
};

struct FlowSpec {
  std::span<const ResourceUse> uses{};  // each resource at most once
  Bandwidth cap{};                      // 0 = none
  std::uint32_t share = 1;
  std::uint32_t multiplicity = 1;
  FlowListener* listener = nullptr;  // told of each completion, with `tag`
  std::uint32_t tag = 0;
};

}  // namespace railyard::sim
