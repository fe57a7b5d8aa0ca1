// A plan of NCCL's decisions against what a log says NCCL did: how many facts of each kind agree,
// and the first that do not, with their lines.
//
// Only what the log says is compared; what it does not say counts nowhere. A fact that the plan
// cannot answer (a ring cut short, a GPU known by bus id only, a choice whose call is not in the
// log) is not comparable and counted as such.
//
//   const Comparison comparison = compare(prediction, log, 0);
//   if (!comparison.agrees()) std::fputs(to_text(comparison).c_str(), stdout);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/readers/nccl_log.h"
#include "sim/channel_graph.h"
#include "sim/collective.h"
#include "sim/result.h"

namespace railyard::cli {

// What a plan says, in the log's terms: ranks are the communicator's, algorithms and protocols
// NCCL's. Empty containers, -1 and unset functions: the plan does not say.
struct NcclPrediction {
  std::string version;                           // "2.30.7", for the report
  std::map<std::string, std::string> variables;  // NCCL_* as planned with
  std::int64_t ranks = -1, nodes = -1;
  std::int64_t channels = -1, nvls_channels = -1, p2p_channels = -1, p2p_channels_per_peer = -1;
  std::int64_t p2p_chunk = -1;                           // bytes
  std::vector<std::vector<sim::ChannelGraph>> searches;  // by node; channels' gpus are ranks
  std::vector<std::size_t> node_of;                      // by rank
  std::vector<std::vector<std::uint32_t>> rings;         // by channel
  std::vector<std::vector<sim::TreeEdges>> trees;        // by channel and rank
  std::vector<std::vector<std::int32_t>> nvls_heads;     // by head and node
  std::optional<calibrate::nccl_log::Tuning> tuning;

  struct Transport {  // of a network: what is unset is not compared
    calibrate::nccl_log::Transport kind = calibrate::nccl_log::Transport::p2p;
    std::optional<std::int64_t> device;  // at the end that the edge names
    std::optional<std::int64_t> proxy;   // the rank that sends (PXN); -1: the edge's own
    std::optional<bool> gpu_direct;
  };
  std::function<std::optional<Transport>(const calibrate::nccl_log::Edge&)> transport;

  struct Call {
    calibrate::nccl_log::Function function = calibrate::nccl_log::Function::all_reduce;
    std::int64_t count = 0, datatype = 0, op = 0, root = 0;  // NCCL's numbers
  };
  struct Choice {
    calibrate::nccl_log::Algorithm algorithm = calibrate::nccl_log::Algorithm::ring;
    calibrate::nccl_log::Protocol protocol = calibrate::nccl_log::Protocol::simple;
    double time = -1;                                    // microseconds, NCCL's own estimate
    std::int64_t first_channel = -1, last_channel = -1;  // those it uses
  };
  std::function<sim::Result<Choice>(const Call&)> choose;
};

struct Difference {
  std::string what;  // "ring of channel 3"
  std::string planned, logged;
  calibrate::nccl_log::Line line = 0;
};

struct Agreement {
  std::string kind;  // "ring orders"
  std::size_t agreed = 0, differed = 0, not_comparable = 0;
  std::vector<Difference> first;  // at most kDifferencesShown
};
inline constexpr std::size_t kDifferencesShown = 5;

struct Comparison {
  std::string source;
  std::vector<Agreement> kinds;    // those of which the log has facts
  std::vector<std::string> notes;  // versions and variables that differ, ranks that are missing
  [[nodiscard]] bool agrees() const;
  [[nodiscard]] std::size_t compared() const;  // facts
};

// `communicator`: which of the log's. It must exist.
Comparison compare(const NcclPrediction& plan, const calibrate::nccl_log::Log& log,
                   std::size_t communicator);

// The communicator with the most ranks, the first of them: the one a job is usually about.
std::size_t main_communicator(const calibrate::nccl_log::Log& log);

std::string to_text(const Comparison& comparison);

}  // namespace railyard::cli
