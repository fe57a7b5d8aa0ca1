// What nccl-tests and rccl-tests (all_reduce_perf, ...) print: text of every version since 2017,
// and the JSON file of 2.17.7 and later (-J).
//
// Text, one table per program run, several in a file:
//   columns   size count type [redop] [root] {time algbw busbw error|#wrong [i_min i_max i_p99
//             i_cv%]} once or twice [timestamp]; which there are, the table's own header says
//   rows      may be torn over several lines by other threads' NCCL INFO lines; halves may be blank
//             (a row with one half is out-of-place, unless it stands where in-place does)
//   around    rank lines with device and bus id, versions, averages; prefixes of mpirun and srun
// Units as printed: bytes, microseconds, GB/s (1e9). nccl-tests prints a time of eight digits and
// more with two digits ("1.2e+07"); it is then taken from bytes and algbw, which have more.
//
// Which collective: what the header or the command line says, else NCCL's own lines, else what
// columns and figures leave possible (element count against size tells ReduceScatter from
// AllReduce; busbw / algbw tells SendRecv), else the file's name. Ranks likewise: rank lines, else
// size / count, else busbw / algbw. Where several remain, none is claimed and a note names them.
//
// Checks (as notes, with their line): rows of 0 bytes or time 0, wrong results, sizes that go down,
// sizes missing, figures that do not agree with each other, a table cut off, ranks not listed.
// Cost: O(bytes of text); memory O(rows).
//
//   RAILYARD_ASSIGN(const NcclTestsLog log, read_nccl_tests(text, "all_reduce.log"));
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

struct NcclTestsRank {
  std::int64_t rank = -1, group = 0, pid = -1, device = -1;
  std::string host;
  std::string bus;  // as printed: "0x0f", "0000:17:00"
  std::string gpu;  // model; rccl-tests may print none
  std::size_t line = 0;
};

struct NcclTestsIterations {  // per-iteration report, microseconds and percent
  double min = 0, max = 0, p99 = 0, variation_percent = 0;
};

struct NcclTestsHalf {  // out-of-place or in-place
  double us = 0, algbw = 0, busbw = 0;
  std::optional<double> wrong;  // elements, or the largest error where the column is `error`
  std::optional<NcclTestsIterations> iterations;
};

struct NcclTestsRow {
  std::int64_t bytes = 0, count = 0;
  std::string datatype, redop;       // redop empty: the column is absent or says none
  std::optional<std::int64_t> root;  // absent: the column is absent or says -1
  std::optional<NcclTestsHalf> out_of_place, in_place;
  std::size_t line = 0;
};

// What told the collective, or the number of ranks.
enum class NcclTestsEvidence { none, header, command, nccl_lines, figures, file_name };

struct NcclTestsTable {
  std::string program;  // "all_reduce_perf"; empty if the log does not say
  std::optional<sim::Collective> collective;
  NcclTestsEvidence collective_from = NcclTestsEvidence::none;

  std::string version;  // of nccl-tests, since 2.18; rccl-tests: "develop:a52452e"
  std::string nccl;     // "2.27.3", "2.27.7+cuda13.0"

  std::int64_t threads = -1, gpus_per_thread = -1;  // nThread, nGpus
  std::int64_t min_bytes = -1, max_bytes = -1;
  std::int64_t step_bytes = -1, step_factor = -1;  // one of them
  std::int64_t warmup = -1, iterations = -1, aggregated = -1, graph = -1;
  std::optional<bool> validated;

  std::vector<NcclTestsRank> ranks;  // those listed
  std::int64_t rank_count = -1;      // of one communicator
  NcclTestsEvidence rank_count_from = NcclTestsEvidence::none;
  std::int64_t node_count = -1, process_count = -1, group_count = -1;

  bool host_times = false;    // cputime: until the call returns, not until the GPU is done
  bool error_column = false;  // `error` (largest difference) instead of `#wrong`
  std::vector<NcclTestsRow> rows;
  std::optional<double> average_busbw;
  std::optional<std::int64_t> out_of_bounds;
  std::size_t line = 0;  // of the columns' header
};

struct NcclTestsLog {
  std::string source;
  std::vector<NcclTestsTable> tables;  // at least one, none without rows
  std::vector<Note> notes;
};

// Errors: another tool's log (named), no table, no row in any table, broken JSON.
sim::Result<NcclTestsLog> read_nccl_tests(std::string_view text, std::string_view name);

std::vector<Measurement> measurements(const NcclTestsLog& log);

}  // namespace railyard::calibrate

namespace railyard::sim {

template <>
struct EnumTable<calibrate::NcclTestsEvidence> {
  using Evidence = calibrate::NcclTestsEvidence;
  static constexpr std::string_view kind = "evidence";
  static constexpr std::array entries{
      EnumEntry{Evidence::none, "nothing"},        EnumEntry{Evidence::header, "header"},
      EnumEntry{Evidence::command, "command"},     EnumEntry{Evidence::nccl_lines, "NCCL's lines"},
      EnumEntry{Evidence::figures, "the figures"}, EnumEntry{Evidence::file_name, "file name"}};
};

}  // namespace railyard::sim
