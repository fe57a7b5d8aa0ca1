#include "tools/cli/measured_run.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/paths.h"
#include "tests/skip.h"

using namespace railyard;
using namespace railyard::cli;
using sim::bytes;

namespace {

const std::string kPlatform =
    "id: x\ncollective: AllReduce\nplatform: {name: p, machine: m, nodes: 2, gpus_per_node: 8}\n";

std::string error_of(const std::string& text) {
  const auto run = measured_run_from_text(text, "x.yaml");
  return run.ok() ? "" : run.error().text();
}

}  // namespace

TEST_CASE("measured run: times, or what follows from a bandwidth") {
  const auto read = measured_run_from_text(
      kPlatform +
          "rows:\n  - [1000, 20.5, 0.1, 0.2]\n  - [2000000, null, 100, null]\n"
          "  - [16000000, null, null, 375]\n  - [32000000, null, null, null]\n"
          "rows_in_place: [[1000, 21, null, null]]\n",
      "x.yaml");
  REQUIRE(read.ok());
  const MeasuredRun& run = read.value();
  REQUIRE(run.rows.size() == 3);
  CHECK(run.rows[0].time_us == 20.5);
  // 2 MB at 100 GB/s = 20 us; busbw 375 GB/s of 16 ranks is algbw 200 GB/s: 16 MB in 80 us.
  CHECK(run.rows[1].time_us == doctest::Approx(20));
  CHECK(run.rows[2].time_us == doctest::Approx(80));
  CHECK(run.rows_in_place[0].time_us == 21);
  REQUIRE(run.notes.size() == 1);
  CHECK(run.notes[0] == "x.yaml:8:5: 32000000 B has no time that counts");
}

TEST_CASE("measured run: sizes that go down are sorted and noted") {
  const auto read = measured_run_from_text(kPlatform + "rows: [[64, 2], [8, 1]]\n", "x.yaml");
  REQUIRE(read.ok());
  CHECK(read.value().rows[0].size == bytes(8));
  REQUIRE(read.value().notes.size() == 1);
  CHECK(read.value().notes[0] == "x.yaml:4:7: sizes that go down; sorted");
}

TEST_CASE("measured run: variables of their own, and as words of a command or a list") {
  const auto read = measured_run_from_text(
      kPlatform +
          "env:\n  settings: \"NCCL_PROTO=Simple, NCCL_ALGO=Tree, NCCL_MIN_NCHANNELS=4\"\n"
          "  NCCL_ALGO: Ring\n"
          "  command: mpirun -x NCCL_IB_HCA=mlx5_0,mlx5_1 -x 'NCCL_DEBUG=INFO' NCCL_NTHREADS= "
          "XNCCL_A=1 NCCL_b=2 NCCL_C\n  note: NCCL_CROSS_NIC=1 was no better\n",
      "x.yaml");
  REQUIRE(read.ok());
  std::map<std::string, std::string> env = read.value().env;
  env.erase("settings");
  env.erase("command");
  env.erase("note");
  CHECK(env == std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"},
                                                  {"NCCL_DEBUG", "INFO"},
                                                  {"NCCL_IB_HCA", "mlx5_0,mlx5_1"},
                                                  {"NCCL_MIN_NCHANNELS", "4"},
                                                  {"NCCL_PROTO", "Simple"}});
}

TEST_CASE("measured run: errors name line and key") {
  CHECK(error_of("[1, 2]") == "x.yaml:1:1: a map is expected, not a list");
  CHECK(error_of("id: x\ncollective: AllReduce\n") == "x.yaml:1:1: platform: missing");
  CHECK(error_of("id: x\n") == "x.yaml:1:1: collective: missing");
  CHECK(error_of("id: x\ncollective: A\nplatform:\n  name: p\n  nodes: two\n")
            .starts_with("x.yaml:5:10: platform.nodes:"));
  CHECK(error_of(kPlatform + "rows: 3\n") ==
        "x.yaml:4:7: rows: expected a list of at most 10,000 rows");
  CHECK(error_of(kPlatform + "rows: [[8]]\n") ==
        "x.yaml:4:8: rows[0]: expected [bytes, time_us, ...]");
  CHECK(error_of(kPlatform + "rows: [[8, 1], [a, 2]]\n").starts_with("x.yaml:4:17: rows[1][0]:"));
  CHECK(error_of(kPlatform + "rows: [[8, soon]]\n").starts_with("x.yaml:4:12: rows[0][1]:"));
  CHECK(error_of(kPlatform + "env: [1]\n") == "x.yaml:4:6: env: expected a map");
  CHECK(error_of(kPlatform + "id: y\n").find("x.yaml:4") == 0);  // twice
}

TEST_CASE("measured run: the reference set is read whole" * doctest::test_suite("samples")) {
  const std::string folder = std::string(RAILYARD_SHARED_DIR) + "/reference/measured";
  if (!std::filesystem::is_directory(folder)) RAILYARD_SKIP("no reference measurements here");
  const auto files = measured_run_files(folder, "");
  REQUIRE(files.ok());
  CHECK(files.value().size() == 200);
  std::size_t rows = 0;
  for (const std::string& file : files.value()) {
    const auto run = read_measured_run(file);
    CAPTURE(file);
    REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().text()));
    CHECK(file.ends_with("/" + run.value().id + ".yaml"));
    rows += run.value().rows.size() + run.value().rows_in_place.size();
  }
  CHECK(rows > 4'886);  // the healthy values that were counted independently
  CHECK(measured_run_files(folder, "alps-*").value().size() == 9);
}
