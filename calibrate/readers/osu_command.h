// What a launcher's command line says about an OSU run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace railyard::calibrate {

struct OsuCommand {
  std::string program;                  // "osu_bw"; empty: the line runs no OSU program
  std::string placement;                // "D D", as the last two words say
  std::int64_t ranks = -1, nodes = -1;  // -1: not said
};

// "$ srun -N2 --ntasks-per-node=4 ./collective/osu_alltoall --validation -d cuda"
OsuCommand osu_command(std::string_view line);

}  // namespace railyard::calibrate
