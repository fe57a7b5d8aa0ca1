// nccl-tests text: every format and every trap on made-up lines; expectations are read off them.
#include <doctest/doctest.h>

#include "calibrate/readers/nccl_tests.h"
#include "tests/calibrate/readers/support.h"

using namespace railyard::tests::readers;  // NOLINT: a test's own names
using namespace railyard::calibrate;       // NOLINT
using railyard::sim::Collective;

namespace {

const std::string kHeader =
    "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: "
    "20 agg iters: 1 validation: 1 graph: 0\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  10 on  hosta device  0 [0000:17:00] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid  11 on  hosta device  1 [0000:3b:00] NVIDIA H100\n"
    "#  Rank  2 Group  0 Pid  20 on  hostb device  0 [0000:17:00] NVIDIA H100\n"
    "#  Rank  3 Group  0 Pid  21 on  hostb device  1 [0000:3b:00] NVIDIA H100\n";
const std::string kColumns =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time "
    "  algbw   busbw #wrong\n";
const std::string kRows =
    "     1048576        262144     float     sum      -1    100.0   10.49   15.73      0    110.0 "
    " "
    "  9.53   14.30      0\n"
    "     2097152        524288     float     sum      -1    200.0   10.49   15.73      0    200.0 "
    " "
    " 10.49   15.73      0\n"
    "     4194304       1048576     float     sum      -1    400.0   10.49   15.73      0    400.0 "
    " "
    " 10.49   15.73      0\n";
const std::string kFooter = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 15.49 \n#\n";

NcclTestsLog read(const std::string& text, std::string_view name = "test.log") {
  return good(read_nccl_tests, text, name);
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("nccl-tests text: a clean table has no notes, its collective follows from the figures") {
  const NcclTestsLog log = read(kHeader + kColumns + kRows + kFooter);
  CHECK(notes_text(log.notes).empty());
  CHECK(log.tables.at(0).collective == Collective::all_reduce);  // busbw / algbw = 1.5 = 2 x 3 / 4
  CHECK(log.tables[0].collective_from == NcclTestsEvidence::figures);
  CHECK(log.tables[0].process_count == 4);
  CHECK(log.tables[0].node_count == 2);
}

TEST_CASE("nccl-tests text: V4 with versions, per-iteration columns and a timestamp") {
  const NcclTestsLog log = read(
      "# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22703\n"
      "# Collective test starting: reduce_scatter_perf\n" +
      replaced(kHeader, "graph: 0", "graph: 0 unalign: 0") +
      "#   size  count  type  redop  root  time algbw busbw #wrong i_min i_max i_p99 i_cv% time "
      "algbw busbw #wrong i_min i_max i_p99 i_cv%   timestamp\n"
      " 1048576 65536 float sum -1 100.0 10.49 7.86 0 90.0 120.5 119.0 3.25 104.9 10.00 7.50 N/A "
      "91 121 120 4.00  2026-02-03 04:05:06\n");
  const NcclTestsTable& table = log.tables.at(0);
  CHECK(table.version == "2.19.6");
  CHECK(table.nccl == "2.27.3");
  CHECK(table.program == "reduce_scatter_perf");
  CHECK(table.collective == Collective::reduce_scatter);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].out_of_place->iterations->max == 120.5);
  CHECK(table.rows[0].out_of_place->iterations->variation_percent == 3.25);
  CHECK(table.rows[0].in_place->iterations->min == 91);
  CHECK_FALSE(table.rows[0].in_place->wrong.has_value());
  CHECK(mentions(log.notes, "no closing lines"));
}

TEST_CASE("nccl-tests text: blank halves") {
  const std::string before = "     1048576        262144     float     sum      -1";
  const NcclTestsLog out = read(kHeader + kColumns + before + "    100.0   10.49   15.73      0\n");
  CHECK(out.tables.at(0).rows.at(0).out_of_place.has_value());
  CHECK_FALSE(out.tables[0].rows[0].in_place.has_value());
  const NcclTestsLog in = read(kHeader + kColumns + before + std::string(32, ' ') +
                               "    100.0   10.49   15.73      0\n");
  CHECK_FALSE(in.tables.at(0).rows.at(0).out_of_place.has_value());
  CHECK(in.tables[0].rows[0].in_place->us == 100.0);
  CHECK(measurements(in).at(0).in_place);
}

TEST_CASE("nccl-tests text: a time in e-notation is taken from size and bandwidth") {
  const NcclTestsLog log = read(kHeader + kColumns +
                                " 17179869184 4294967296 float sum -1 1.2e+07 1.44 2.16 0 1.2e+07 "
                                "0.50 0.75 0\n");
  const NcclTestsRow& row = log.tables.at(0).rows.at(0);
  CHECK(row.out_of_place->us == doctest::Approx(17179869184 / 1.44 / 1e3));
  CHECK(row.in_place->us == 1.2e7);  // algbw has no more digits than the time
  CHECK(mentions(log.notes, "not the printed 0.5"));
}

TEST_CASE("nccl-tests text: rows torn by other threads, prefixes of launchers, colours") {
  std::string torn = kHeader + kColumns;
  torn +=
      "     1048576        262144     float     sum      -1hosta:10:12 [0] NCCL INFO a line\n"
      "hostb:20:22 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1\n"
      "    100.0   10.49   15.73      0hosta:11:12 [1] NCCL INFO b 1 2 3\n"
      "    110.0    9.53   14.30      0\n"
      "     2097152        524288     float     sum      -1    200.0   10.49   15.73      0 "
      "some library warns\n"
      "   200.0   10.49   15.73      0\n";
  const NcclTestsLog log = read(torn);
  REQUIRE(log.tables.at(0).rows.size() == 2);
  CHECK(log.tables[0].rows[0].in_place->us == 110.0);
  CHECK(log.tables[0].rows[0].line == 8);
  CHECK(log.tables[0].rows[1].in_place->us == 200.0);
  CHECK(log.tables[0].collective_from == NcclTestsEvidence::nccl_lines);

  std::string tagged;
  std::size_t from = 0;
  const std::string plain = kHeader + kColumns + kRows + kFooter;
  for (const char* tag :
       {"[1,0]<stdout>:", "[1,0]<stdout> ", "0: ", "\x1b[32m", "(RayWorker pid=7, ip=10.0.0.1) "}) {
    tagged.clear();
    for (from = 0; from < plain.size();) {
      const std::size_t end = plain.find('\n', from);
      tagged += tag + plain.substr(from, end - from) + "\r\n";
      from = end + 1;
    }
    CAPTURE(tag);
    const NcclTestsLog same = read(tagged);
    CHECK(same.tables.at(0).rows.size() == 3);
    CHECK(same.tables[0].ranks.size() == 4);
    CHECK(same.tables[0].average_busbw == 15.49);
  }
}

TEST_CASE("nccl-tests text: a row that lost or broke a field is left out, and said") {
  const NcclTestsLog log = read(kHeader + kColumns + kRows +
                                "     8388608       2097152     float     sum      -1    800 .0   "
                                "10.49   15.73      0    800.0   10.49   15.73      0\n" +
                                kFooter);
  CHECK(log.tables.at(0).rows.size() == 3);
  CHECK(mentions(log.notes, "11: row of 8388608 bytes left out: 14 fields where 9 or 13"));
  const NcclTestsLog nan =
      read(kHeader + kColumns + replaced(kRows, "100.0   10.49   15.73", "nan   inf   15.73"));
  CHECK(mentions(nan.notes, "8: row of 1048576 bytes: \"nan inf 15.73\" is no time"));
  CHECK(nan.tables[0].rows[0].in_place.has_value());
}

TEST_CASE("nccl-tests text: figures that do not agree") {
  const auto notes = [](const std::string& text) { return notes_text(read(text).notes); };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string zero = notes(kHeader + kColumns + replaced(kRows, "  100.0 ", "  0.00 "));
  CHECK(has(zero, "8: time 0 for 1048576 bytes: not used"));
  CHECK(measurements(read(kHeader + kColumns + replaced(kRows, "  100.0 ", "  0.00 "))).size() ==
        5);
  const std::string units = notes(kHeader + kColumns + replaced(kRows, "  100.0 ", "  0.100 "));
  CHECK(has(units, "8: 1048576 bytes in 0.1 us are 10485.76 GB/s, not the printed 10.49"));
  const std::string wrong =
      notes(kHeader + kColumns + replaced(kRows, "15.73      0", "15.73     12") + kFooter);
  CHECK(has(wrong, "8: 12 wrong elements at 1048576 bytes: not used"));
  const std::string average =
      notes(kHeader + kColumns + kRows + replaced(kFooter, "15.49", "99.00"));
  CHECK(has(average, "average busbw is 15.492, the closing line says 99"));
  const std::string bounds =
      notes(kHeader + kColumns + kRows + replaced(kFooter, ": 0 OK", ": 7 FAILED"));
  CHECK(has(bounds, "reports 7 values out of bounds"));
  const std::string down =
      notes(kHeader + kColumns + kRows + kRows.substr(0, kRows.find('\n') + 1));
  CHECK(has(down, "11: sizes go down, from 4194304 to 1048576"));
  const std::string cut = notes(kHeader + kColumns + kRows.substr(0, kRows.find('\n') + 1));
  CHECK(has(cut, "8: the last row has 1048576 bytes, maxBytes is 4194304: cut off"));
  std::string gap = kRows;
  gap.erase(gap.find('\n') + 1, gap.find('\n', gap.find('\n') + 1) - gap.find('\n'));
  CHECK(has(notes(kHeader + kColumns + gap), "9: sizes between 1048576 and 4194304 are missing"));
  const std::string ranks = notes(
      replaced(kHeader,
               "#  Rank  3 Group  0 Pid  21 on  hostb device  1 [0000:3b:00] NVIDIA H100\n", "") +
      kColumns + kRows);
  CHECK(has(ranks, "3 ranks are listed, but the figures are those of 4"));
  const std::string host = notes(kHeader + replaced(kColumns, "time", "cputime") + kRows);
  CHECK(has(host, "times are the host's (cputime)"));
}

TEST_CASE("nccl-tests text: what is announced against what the figures are") {
  const NcclTestsLog log =
      read("# Collective test starting: all_gather_perf\n" + kHeader + kColumns + kRows + kFooter);
  CHECK(log.tables.at(0).collective == Collective::all_gather);
  CHECK(mentions(log.notes,
                 "all_gather_perf is announced, but columns and figures are those of "
                 "AllReduce"));
  const NcclTestsLog other =
      read(kHeader + kColumns + kRows + kFooter + "# Collective test concluded: hypercube_perf\n");
  CHECK_FALSE(other.tables.at(0).collective.has_value());
  CHECK(mentions(other.notes, "hypercube_perf is no collective that can be simulated"));
}

TEST_CASE("nccl-tests text: two ranks, AllReduce or SendRecv, the file's name may tell") {
  const std::string text =
      kColumns + " 1048576 262144 float sum -1 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n";
  const NcclTestsLog unknown = read(text);
  CHECK_FALSE(unknown.tables.at(0).collective.has_value());
  CHECK(mentions(unknown.notes, "which collective this is: AllReduce or SendRecv"));
  CHECK(mentions(unknown.notes, "does not say how many ranks"));
  const NcclTestsLog named = read(text, "runs/2gpu-all-reduce.txt");
  CHECK(named.tables.at(0).collective == Collective::all_reduce);
  CHECK(named.tables[0].collective_from == NcclTestsEvidence::file_name);
  CHECK(named.tables[0].rank_count == 2);
  const NcclTestsLog command = read("$ ./build/sendrecv_perf -b 1M\n" + text);
  CHECK(command.tables.at(0).collective == Collective::send_recv);
  CHECK(command.tables[0].collective_from == NcclTestsEvidence::command);
}

TEST_CASE("nccl-tests text: types and roots of several sweeps, split communicators") {
  const NcclTestsLog log =
      read(replaced(kHeader, "Rank  3 Group  0", "Rank  3 Group  1") + kColumns +
           " 1048576 262144 float none 0 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n"
           " 1048576 262144 float none 1 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n"
           " 1048576 524288 half none 0 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n");
  const NcclTestsTable& table = log.tables.at(0);
  CHECK(table.collective == Collective::broadcast);
  CHECK(table.rows[1].root == 1);
  CHECK(table.rows[2].datatype == "half");
  CHECK(table.rows[2].redop.empty());
  CHECK(table.group_count == 2);
  CHECK(table.rank_count == 2);
  CHECK(mentions(log.notes, "2 communicators of 2 ranks"));
  CHECK_FALSE(mentions(log.notes, "sizes go down"));
}

TEST_CASE("nccl-tests text: rank lines that make no equal groups are not believed") {
  std::string header = replaced(kHeader, "Rank  3 Group  0", "Rank  3 Group  5");
  header = replaced(header, "Rank  2 Group  0", "Rank  2 Group  9");
  const NcclTestsLog log = read(header + kColumns + kRows + kFooter);
  CHECK(log.tables.at(0).rank_count == 4);  // busbw / algbw
  CHECK(log.tables[0].rank_count_from == NcclTestsEvidence::figures);
  CHECK(mentions(log.notes, "the ranks listed make no equal groups; the figures are those of 4"));
}

TEST_CASE("nccl-tests text: several runs, one of them empty") {
  const std::string run = kHeader + kColumns + kRows + kFooter;
  const NcclTestsLog log = read(run + kHeader + kColumns + kFooter + run);
  CHECK(log.tables.size() == 2);
  CHECK(mentions(log.notes, "20: a table without rows"));
  CHECK(log.tables[1].ranks.size() == 4);
}

TEST_CASE("nccl-tests text: errors name what is wrong") {
  CHECK(error_of(read_nccl_tests, kHeader + kColumns + kFooter) ==
        "test.log:7: a table's header, but no row that can be read");
  CHECK(
      error_of(read_nccl_tests, "# OSU MPI Bandwidth Test v7.5\n# Size  Bandwidth (MB/s)\n1 2\n") ==
      "test.log:1: this is an OSU log (\"# OSU MPI Bandwidth Test v7.5\"), expected an nccl-tests "
      "log");
  CHECK(error_of(read_nccl_tests, "") ==
        "test.log: this is an empty file, expected an nccl-tests log");
  CHECK(error_of(read_nccl_tests, kHeader).find("this looks like an nccl-tests log") !=
        std::string::npos);
}

TEST_CASE("nccl-tests text: a broken file does not flood the notes") {
  std::string text = kHeader + kColumns + kRows;
  for (int i = 0; i < 1000; ++i) text += " 1048576 262144 float 1 2\n";
  const NcclTestsLog log = read(text);
  CHECK(log.notes.size() == 201);
  CHECK(log.notes.back().text.find("more notes") != std::string::npos);
}
