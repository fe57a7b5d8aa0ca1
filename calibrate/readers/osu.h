// What the OSU micro-benchmarks print (osu_bw, osu_latency, osu_allreduce, ...), 3.x to 7.x.
//
// "# OSU MPI-CUDA Bandwidth Test v7.5", further '#' lines, columns, rows. Columns are told by the
// header: one figure, min/max/iterations (-f), validation, or those of non-blocking tests.
// Units: MB/s is 1e6 bytes per second; times are microseconds; pt2pt latency is half a round trip;
// osu_bibw sums both directions.
//
// Sizes of collectives: OSU prints one rank's message, nccl-tests the whole buffer. They agree for
// allreduce, reduce, broadcast and reduce-scatter; for allgather, alltoall, gather and scatter the
// whole is size x ranks. OSU does not print ranks: they come from a command line in the log
// (-n, -np, -N, --ntasks, --ntasks-per-node); without one those collectives are not measured.
// Notes: tables without rows, sizes that go down, failed validation, crashes.
//
//   RAILYARD_ASSIGN(const OsuLog log, read_osu(text, "osu_bw.txt"));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/measurement.h"
#include "sim/result.h"

namespace railyard::calibrate {

enum class OsuFigure {  // of the column that is measured
  latency,              // us
  bandwidth,            // MB/s, one direction
  both_ways,            // MB/s, sum of both directions
  message_rate,         // MB/s of several pairs
  other                 // kept, not measured: overlap of non-blocking tests, unknown columns
};

struct OsuRow {
  std::int64_t bytes = 0;
  std::vector<std::optional<double>> values;  // one for each of OsuTable::columns
  std::optional<bool> valid;                  // -c / --validation
  std::size_t line = 0;
};

struct OsuTable {
  std::string title;        // "MPI-CUDA Bandwidth Test"
  std::string version;      // "7.5"
  std::string program;      // from the command line: "osu_bw"; empty if there is none
  std::string accelerator;  // "CUDA", "ROCM"; empty
  std::string datatype;     // "MPI_CHAR"
  std::string placement;    // "D D", "H H": buffers on device or host; empty if not said
  OsuFigure figure = OsuFigure::other;
  std::optional<sim::Collective> collective;
  std::int64_t ranks = -1, nodes = -1;  // from the command line
  std::vector<std::string> columns;     // after Size; without validation
  std::vector<OsuRow> rows;
  std::size_t line = 0;
};

struct OsuLog {
  std::string source;
  std::vector<OsuTable> tables;  // at least one, none without rows
  std::vector<Note> notes;
};

// Errors: another tool's log (named), no row in any table.
sim::Result<OsuLog> read_osu(std::string_view text, std::string_view name);

std::vector<Measurement> measurements(const OsuLog& log);

}  // namespace railyard::calibrate

namespace railyard::sim {
template <>
struct EnumTable<calibrate::OsuFigure> {
  using Figure = calibrate::OsuFigure;
  static constexpr std::string_view kind = "figure";
  static constexpr std::array entries{
      EnumEntry{Figure::latency, "latency"}, EnumEntry{Figure::bandwidth, "bandwidth"},
      EnumEntry{Figure::both_ways, "both ways"}, EnumEntry{Figure::message_rate, "message rate"},
      EnumEntry{Figure::other, "other"}};
};
}  // namespace railyard::sim
