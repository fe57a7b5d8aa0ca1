// The CSV file of NCCL's example tuner plugin (NCCL_TUNER_CONFIG_FILE, plugins/tuner/example):
//
//   collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]
//   allreduce,0,65536,tree,ll,4,2,16,-1,-1
//
// Names as the plugin has them: broadcast reduce allgather reducescatter allreduce; tree ring
// collnet_direct collnet_chain nvls nvls_tree pat; ll ll128 simple. -1 = any (channels: leave).
// Lines that start with # and blank lines are skipped. The first line that matches a call sets the
// cost of its pair to 0, so that it wins - if the pair was a candidate at all, else the scan goes
// on.
//
// Two readings of the channel count (ChannelReading):
//   documented  no match, or channels = -1: NCCL's own count
//   as_shipped  the plugin presets 1 channel at every call, so that both mean 1 channel. It also
//               edits three constants (Blackwell from 3 nodes: Tree 15 GB/s, Ring LL128 20 GB/s per
//               channel; NVLS network hop 24 us) and gives NVLSTree chunks of 32 KiB at least.
//
// The plugin takes unknown names as allreduce, ring, simple; here they are errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/nccl/names.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

struct TunerLine {
  Function function = Function::all_reduce;
  std::uint64_t min_bytes = 0;
  std::uint64_t max_bytes = 0;
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::int32_t channels = -1;
  std::int32_t nodes = -1;
  std::int32_t ranks = -1;
  std::int32_t pipe_ops = -1;
  std::int32_t registered = -1;
};

enum class ChannelReading { documented, as_shipped };

struct TunerFile {
  std::vector<TunerLine> lines;
  ChannelReading reading = ChannelReading::documented;
};

// `name` is the file's, for errors: "name:3: ...".
sim::Result<TunerFile> parse_tuner_file(std::string_view text, const std::string& name);

struct TunerQuestion {
  Function function = Function::all_reduce;
  std::uint64_t bytes = 0;  // as the cost model counts them
  std::int32_t nodes = 1;
  std::int32_t ranks = 1;
  std::int32_t pipe_ops = 1;
};

// Edits the costs (negative = no candidate; NCCL's mark for it is -1) and returns the channel
// count; 0 = NCCL's own.
std::int32_t apply_tuner(const TunerFile& tuner, const TunerQuestion& question,
                         PerAlgorithm<float>& costs);

}  // namespace railyard::algorithms::nccl
