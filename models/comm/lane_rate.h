// What a connection's or a switch flow's rates are made of: shared by the files of CommCosts.
#pragma once

#include "sim/cost.h"
#include "sim/parameters.h"

namespace railyard::models {

// Wire bytes per payload byte, as a reduced fraction.
void set_wire_ratio(sim::Protocol protocol, double efficiency, sim::ConnectionCost& cost);

// What a message takes of the sender's proxy (NetworkParameters has the formula).
void set_send_service(const sim::NetworkParameters& network, sim::Protocol protocol,
                      sim::ConnectionCost& cost);

// What the library's copies of small messages out of GPU memory and into it take of the proxies.
void set_copies(const sim::NetworkParameters& network, bool from_gpu, bool to_gpu,
                sim::ConnectionCost& cost);

// A payload rate as a wire rate, for a lane that has a share of its CTA; 0 stays 0 (no limit).
sim::Bandwidth lane_rate(sim::Bandwidth payload_rate, const sim::Lane& lane,
                         const sim::ConnectionCost& cost);

// The rate of what is done to the same bytes one after the other; 0 takes no time.
sim::Bandwidth in_turn(sim::Bandwidth a, sim::Bandwidth b);

}  // namespace railyard::models
