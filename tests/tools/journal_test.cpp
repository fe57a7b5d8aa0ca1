#include "tools/cli/journal.h"

#include <doctest/doctest.h>

#include "tests/tools/helpers.h"

namespace railyard::cli {
namespace {

using namespace sim::literals;
using tests::TemporaryDirectory;

PointResult some_result() {
  PointResult result = point_result(tests::ddp_result());
  result.trace_hash = 0xffffffffffffffffULL;
  return result;
}

std::unique_ptr<Journal> opened(const TemporaryDirectory& directory) {
  auto journal = Journal::open(directory.path("j"));
  REQUIRE(journal.ok());
  return std::move(journal).value();
}

}  // namespace

TEST_CASE("journal: a line holds a result exactly") {
  const PointResult before = some_result();
  const auto parsed = parse_journal_line(journal_line("k1", before));
  REQUIRE(parsed.has_value());
  CHECK(parsed->first == "k1");
  const PointResult& after = parsed->second;
  CHECK(after.time == 9'500_us);
  CHECK(after.exposed == before.exposed);
  CHECK(after.compute == before.compute);
  CHECK(after.communication == before.communication);
  CHECK(after.busbw == before.busbw);
  CHECK(after.bound_by == "compute");
  CHECK(after.trace_hash == 0xffffffffffffffffULL);
  REQUIRE(after.sensitivity.size() == 3);
  CHECK(after.sensitivity[1].what == "compute speed");
  CHECK(after.sensitivity[1].varied == 8'740_us);
  CHECK(journal_line("k1", after) == journal_line("k1", before));
}

TEST_CASE("journal: the bus bandwidth of a step is weighted by bucket size") {
  auto result = tests::ddp_result();
  result.ddp->buckets[0].busbw = 26;  // 1 MiB
  result.ddp->buckets[1].busbw = 52;  // 25 MiB: (26 + 25 * 52) / 26 = 51
  CHECK(point_result(result).busbw == doctest::Approx(51));
  CHECK(point_result(tests::flow_result()).busbw == 0);
}

TEST_CASE("journal: errors are results too") {
  auto result = tests::ddp_result();
  result.unfinished = {"rank 0 waits for rank 1"};
  const PointResult hang = point_result(result);
  CHECK(hang.error == "the job would hang: rank 0 waits for rank 1");
  CHECK(parse_journal_line(journal_line("k", hang))->second.error == hang.error);
}

TEST_CASE("journal: what is torn or foreign is no line") {
  const std::string line = journal_line("k", some_result());
  for (std::size_t size = 0; size < line.size(); ++size)
    CHECK_FALSE(parse_journal_line(std::string_view(line).substr(0, size)).has_value());
  for (const char* text : {"[]", "1", "{\"key\":1}", "{\"key\":\"k\"}",
                           "{\"key\":\"k\",\"time_ps\":\"x\"}", "{\"railyard_journal\":1}"})
    CHECK_FALSE(parse_journal_line(text).has_value());
}

TEST_CASE("journal: what was appended is found by the next") {
  const TemporaryDirectory directory;
  {
    const auto journal = opened(directory);
    CHECK(journal->size() == 0);
    REQUIRE(journal->append("a", some_result()).ok());
    REQUIRE(journal->append("b", some_result()).ok());
  }
  CHECK(directory.read("j").starts_with(kJournalMarker));
  const auto journal = opened(directory);
  CHECK(journal->size() == 2);
  REQUIRE(journal->find("a") != nullptr);
  CHECK(journal->find("a")->time == 9'500_us);
  CHECK(journal->find("c") == nullptr);
}

TEST_CASE("journal: torn anywhere, it goes on and loses only the torn line") {
  const TemporaryDirectory directory;
  {
    const auto journal = opened(directory);
    REQUIRE(journal->append("a", some_result()).ok());
    REQUIRE(journal->append("b", some_result()).ok());
  }
  const std::string whole = directory.read("j");
  const std::size_t first = whole.find('\n') + 1;
  const std::size_t second = whole.find('\n', first) + 1;
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    directory.write("j", whole.substr(0, size));
    {
      const auto journal = opened(directory);
      CHECK((journal->find("a") != nullptr) == (size + 1 >= second));
      CHECK((journal->find("b") != nullptr) == (size + 1 >= whole.size()));
      REQUIRE(journal->append("c", some_result()).ok());
    }
    const auto journal = opened(directory);
    CHECK(journal->find("c") != nullptr);
  }
}

TEST_CASE("journal: some other file is refused and left alone") {
  const TemporaryDirectory directory;
  directory.write("j", "my own notes\n");
  const auto journal = Journal::open(directory.path("j"));
  REQUIRE_FALSE(journal.ok());
  CHECK(journal.error().text() ==
        directory.path("j") + ": cannot use the journal: it is some other file");
  CHECK(directory.read("j") == "my own notes\n");
  CHECK_FALSE(Journal::open(directory.path("no/such")).ok());
}

TEST_CASE("journal: the key follows what the numbers depend on") {
  const auto read = [](std::string_view more) {
    return scenarios::scenario_from_text(tests::small_yaml(more), "s.yaml", {.read_files = false})
        .value();
  };
  const std::string key = point_key(read(""));
  CHECK(key.size() == 16);
  CHECK(point_key(read("")) == key);
  CHECK(point_key(read("# a comment\n")) == key);
  CHECK(point_key(read("seed: 2\n")) != key);
  CHECK(point_key(read("parameters: {links: {nic: {efficiency: 0.5}}}\n")) != key);
}

}  // namespace railyard::cli
