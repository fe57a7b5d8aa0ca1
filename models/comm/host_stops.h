// Which stops in the memory of hosts a connection makes (sim::HostStops), and what they cost.
//
//   shared memory   The FIFO lies in the memory of the receiver's CPU. Simple: the sender's
//                   operation is a flow GPU -> that CPU, capped at P.channel_rate; the receiver's
//                   operation then loads the slice, a flow CPU -> GPU capped at gpu.host_load_rate
//                   x share, before it moves anything on (sim::LaneCost::fetch). So both directions
//                   of a GPU's PCIe link are used, each by the operation that causes it, and an
//                   operation that receives and sends takes the time of both: a CTA waits for its
//                   loads before it stores. LL kinds: the receiver polls the data itself, so that
//                   it is one cut-through flow GPU -> CPU -> GPU capped at the lower of both rates.
//   network         Without GPUDirect RDMA the flow goes GPU -> CPU -> NIC, and NIC -> CPU where
//                   the receiver's operation loads the slice as above; LL kinds go on to the GPU at
//                   once. LL leaves from host memory in any case, whatever GPUDirect may do.
//   polls           A load from host memory goes there and back, so that with H the latency of the
//                   links CPU -> GPU   LL kinds  + H  (a poll is under way when the data come)
//                   Simple, shared memory  + 4 H  (the same poll and its way back; then the data)
//                   Simple, network        + 2 H  (net_hop_latency has the poll)
//   sockets         host memory on both sides. With helper threads wire_cap = socket_rate x
//                   streams, of which a message has one per 64 KiB; without, the two proxies move
//                   the bytes, of all that they send and receive, at socket_rate, one message after
//                   the other. Latency + socket_latency; both proxies' services + socket_message;
//                   the receiving proxy serves every protocol
//   relay (PXN)     the sender writes over NVLink into the relay's memory: latency + P.hop_latency;
//                   LL, whose buffers are in host memory, writes them there itself
//
// No flush without GPUDirect. Source: NCCL src/transport/shm.cc (buffers on the receiving side by
// default), net.cc, net_socket.cc (64 KiB per task).
#pragma once

#include "sim/collective.h"
#include "sim/schedule.h"

namespace railyard::models {

// The CPU in whose memory the sender's buffers are; invalid = they are in a GPU's.
sim::DeviceId written_at(sim::Protocol protocol, const sim::Connection& connection);

// Whether the receiver's operation loads its slices from host memory.
bool is_fetched(sim::Protocol protocol, const sim::Connection& connection);

bool passes_relay(sim::Protocol protocol, const sim::Connection& connection);

}  // namespace railyard::models
