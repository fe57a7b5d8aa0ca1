// Imported fabric: a fabric source fitted to a cluster - which host is which node, which adapter
// which NIC - with its cables numbered as the plan of the cluster needs them.
//
// A host is a node if it has every NIC of the machine cabled: by the names in FabricSpec::adapters;
// or by those that the machine's own NICs have in its topology file, if any host has them all; or,
// without names, if it has just as many adapters, in the natural order of their names. Hosts in
// natural order of their names, unless FabricSpec::hosts lists them. What is left out is noted.
//
// Cables: those of the endpoints (node x rails + rail), then those between switches. Parallel
// cables are one, as wide, unless forwarding tables tell them apart.
//
// With tables every route is what walking them gives. Checked beforehand, for every destination
// from every switch with hosts: no circle, no entry that leads nowhere, none missing between NICs
// of one rail. Cost: O(destinations x switches) and no more memory than the tables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/result.h"
#include "topologies/fabric.h"
#include "topologies/fabric_shape.h"
#include "topologies/fabric_source.h"

namespace railyard::topologies {

inline constexpr std::uint32_t kNoCable = 0xffffffff;

struct ImportedCable {
  std::uint32_t a = 0;  // an endpoint, or a switch
  std::uint32_t b = 0;  // a switch
  sim::Bandwidth rate;  // of all parallel cables together
  std::uint16_t width = 1;
};

struct ImportedSwitch {
  std::string name;  // "leaf/MF0;ib07:MQM9700/U1"
  std::uint32_t level = 0;
  std::uint64_t guid = 0;
  std::vector<std::uint32_t> exits;    // by port number: a cable, or kNoCable; with tables only
  const SwitchTable* table = nullptr;  // in the source
};

struct ImportedFabric {
  FabricSourcePtr source;  // null: none
  std::uint64_t rails = 0;
  std::vector<std::string> hosts;  // by node
  std::vector<ImportedSwitch> switches;
  std::vector<ImportedCable> cables;
  std::vector<std::uint16_t> lids;  // by endpoint
  std::vector<std::string> notes;

  [[nodiscard]] std::uint64_t endpoints() const { return hosts.size() * rails; }
  [[nodiscard]] bool has_tables() const { return !source->tables.switches.empty(); }
  // The cable by which a switch sends a LID on; kNoCable if it says nothing or nothing is there.
  [[nodiscard]] std::uint32_t next_cable(std::uint32_t at_switch, std::uint16_t lid) const;
  // The other end of a cable between switches.
  [[nodiscard]] std::uint32_t across(std::uint32_t cable, std::uint32_t from) const {
    return cables[cable].a == from ? cables[cable].b : cables[cable].a;
  }
};

// Errors name what does not fit: too few hosts, an adapter that a host lacks, NICs that cannot
// reach each other, a fault of the tables.
sim::Result<std::shared_ptr<const ImportedFabric>> resolve_imported(
    const FabricSpec& spec, const FabricEndpoints& endpoints);

// Part of it: the check of the tables.
sim::Result<void> check_tables(const ImportedFabric& fabric);

}  // namespace railyard::topologies
