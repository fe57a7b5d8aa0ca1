// What a Network keeps of every flow and resource, and of both during a solve. The terms (level,
// load, tight, V) are those of network.h.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/flow.h"
#include "sim/units.h"

namespace railyard::sim {

struct NetworkState {
  enum class State : std::uint8_t { idle, starting, active, ended };
  static constexpr std::uint32_t kPrivate = 0xffffffff;  // held back by its own cap, or alone
  static constexpr std::uint32_t kGeneric = 0xffffffff;  // not a pair flow

  struct Flow {
    Uint128 mark = 0;  // held back by a resource: V at which it ends; private: work left at `since`
    std::int64_t since = 0;        // private: when `mark` was true
    std::int64_t end_time = 0;     // private: when it ends
    std::uint64_t level = 0;       // rate / share
    std::uint64_t cap_level = 0;   // floor(cap / share); all ones = none
    std::uint64_t solo_level = 0;  // level when nothing else is active on its resources
    std::int64_t size = 0;         // bytes of the transfer under way
    std::uint32_t first_use = 0;
    std::uint16_t use_count = 0;
    std::uint16_t solved_uses = 0;  // the first so many matter to its rate
    State state = State::idle;
    bool listed = false;  // in changed_
    bool pair = false;    // see ActiveUse
    bool alone_noted = false;
    std::uint32_t bottleneck = kPrivate;
    std::uint32_t share = 1;
    std::uint32_t multiplicity = 1;
    std::uint32_t stamp = 0;        // of the solve that saw it
    std::uint32_t fixed_stamp = 0;  // of the solve that fixed it
    std::uint32_t tag = 0;
    FlowListener* listener = nullptr;
  };
  struct Use {
    std::uint32_t resource = 0;
    std::uint32_t position = 0;  // in the resource's active list
    std::uint64_t load = 1;      // share * weight * multiplicity
    std::uint64_t carried = 1;   // weight * multiplicity
  };
  // One active flow in a resource's list. A *pair* flow (two resources, load 1 on each, no cap) is
  // fixed exactly when one of its two resources is done, so a solve reads nothing but these lists.
  struct ActiveUse {
    std::uint32_t flow = 0;
    std::uint32_t use = 0;
    std::uint32_t other = kGeneric;  // pair flows: the other resource
  };
  // A resource during a solve; kept apart and small so that a component's stay in the first cache.
  struct Filling {
    Uint128 left = 0;               // capacity not yet given away
    std::uint64_t unfixed = 0;      // load of unfixed flows
    std::uint32_t done = 0;         // stamp of the solve in which all its flows were fixed
    std::uint32_t level_stamp = 0;  // of the level at which it was last a bottleneck
  };
  // Resources that active flows connect, or did since the last rebuild: a superset of a component.
  struct Cluster {
    std::vector<std::uint32_t> members;
    std::uint64_t active = 0;   // flows
    std::uint64_t generic = 0;  // active flows that are not pair flows
    std::uint64_t removed = 0;  // flows that ended since it was built
  };
  struct Mark {
    Uint128 at;
    std::uint32_t flow;
  };
  struct Resource {
    Uint128 capacity = 0;  // capacity * multiplicity
    Uint128 service = 0;   // V, up to `since`
    std::uint64_t unit_capacity = 0;
    std::uint64_t load = 0;      // of all active flows
    Uint128 demand = 0;          // sum of load * (cap level + 1) of active flows with a cap
    std::uint32_t uncapped = 0;  // active flows without one
    bool tight = false;          // see network.h
    std::uint64_t level = 0;     // of the flows it holds back; 0 = holds none back
    std::int64_t since = 0;
    std::int64_t end_time = 0;  // next completion among the flows it holds back
    std::int64_t carried = 0;
    std::uint32_t stamp = 0;  // of the solve that saw it
    std::uint32_t cluster = 0;
    std::uint32_t heap_position = 0xffffffff;
    std::vector<ActiveUse> active;  // pair flows that it holds back first
    std::uint32_t held = 0;         // how many those are
    bool limiting = false;          // ever held back a flow
    std::vector<Mark> marks;        // min-heap; entries of flows that moved away are stale
  };
  struct Candidate {
    std::uint64_t level;    // when it was looked at last
    std::uint64_t unfixed;  // at that time; while this is unchanged so is the level
    std::uint32_t resource;
  };
};

}  // namespace railyard::sim
