// Tagged indices: a Rank is not a DeviceId. Each indexes a dense array owned by the value it names.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace railyard::sim {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;  // invalid
  constexpr explicit Id(std::uint32_t value) : value_(value) {}
  constexpr explicit Id(std::size_t value) : value_(static_cast<std::uint32_t>(value)) {}
  constexpr explicit Id(int value) : value_(static_cast<std::uint32_t>(value)) {}

  [[nodiscard]] constexpr bool valid() const { return value_ != kInvalid; }
  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t kInvalid = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t value_ = kInvalid;
};

using DeviceId = Id<struct DeviceTag>;      // Topology::devices
using LinkId = Id<struct LinkTag>;          // Topology::links (directed)
using Rank = Id<struct RankTag>;            // a process of the job, 0..world size - 1
using LaneId = Id<struct LaneTag>;          // Schedule::lanes
using ConnectionId = Id<struct ConnTag>;    // Schedule::connections
using ProgramId = Id<struct ProgramTag>;    // Schedule::programs
using ResourceId = Id<struct ResourceTag>;  // Network resources of one run
using FlowId = Id<struct FlowTag>;          // Network flows of one run

}  // namespace railyard::sim

template <typename Tag>
struct std::hash<railyard::sim::Id<Tag>> {
  std::size_t operator()(railyard::sim::Id<Tag> id) const noexcept { return id.value(); }
};
