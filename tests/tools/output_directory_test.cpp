#include "tools/cli/output_directory.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/tools/helpers.h"

namespace railyard::cli {
namespace {

using tests::TemporaryDirectory;

const OutputKind kKind{"result.json", "{\"mine\"", {"result.json", "a.csv", "b.csv"}};
constexpr std::string_view kMine = "{\"mine\": 1}";

std::string refusal(const TemporaryDirectory& directory) {
  const auto opened = OutputDirectory::open(directory.path(), kKind);
  return opened.ok() ? "accepted" : opened.error().text();
}

}  // namespace

TEST_CASE("output: a new directory is made, with its parents") {
  const TemporaryDirectory temporary;
  const auto opened = OutputDirectory::open(temporary.path("x/y"), kKind);
  REQUIRE(opened.ok());
  REQUIRE(opened.value().write({{"result.json", std::string(kMine)}, {"a.csv", "1"}}).ok());
  CHECK(temporary.read("x/y/result.json") == kMine);
  CHECK(temporary.read("x/y/a.csv") == "1");
}

TEST_CASE("output: our own files are replaced, stale ones go, others stay") {
  const TemporaryDirectory temporary;
  temporary.write("result.json", kMine);
  temporary.write("a.csv", "old");
  temporary.write("b.csv", "old");
  temporary.write("notes.txt", "keep");
  const auto opened = OutputDirectory::open(temporary.path(), kKind);
  REQUIRE(opened.ok());
  CHECK(temporary.read("a.csv") == "old");  // nothing changes before write()
  REQUIRE(opened.value().write({{"a.csv", "new"}, {"result.json", std::string(kMine)}}).ok());
  CHECK(temporary.names() == std::vector<std::string>{"a.csv", "notes.txt", "result.json"});
  CHECK(temporary.read("a.csv") == "new");
  CHECK(temporary.read("notes.txt") == "keep");
}

TEST_CASE("output: somebody else's files of the same names are refused") {
  const TemporaryDirectory temporary;
  temporary.write("a.csv", "precious");
  CHECK(refusal(temporary) == temporary.path() +
                                  ": refused: it holds a a.csv that railyard did not write; choose "
                                  "another directory, or move the file away");
  temporary.write("result.json", "{}");
  CHECK(tests::contains(refusal(temporary), "it holds a result.json that"));
  CHECK(temporary.read("a.csv") == "precious");
}

TEST_CASE("output: other files do not matter") {
  const TemporaryDirectory temporary;
  temporary.write("model.py", "x");
  CHECK(refusal(temporary) == "accepted");
}

TEST_CASE("output: what is no directory, or cannot be written") {
  const TemporaryDirectory temporary;
  const std::string file = temporary.write("file", "x");
  const auto opened = OutputDirectory::open(file, kKind);
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.error().code == sim::ErrorCode::io);
  CHECK_FALSE(OutputDirectory::open(file + "/below", kKind).ok());
}

TEST_CASE("output: a failed write leaves no temporary file and the old ones") {
  const TemporaryDirectory temporary;
  temporary.write("result.json", kMine);
  temporary.write("a.csv", "old");
  const auto opened = OutputDirectory::open(temporary.path(), kKind);
  REQUIRE(opened.ok());
  // A name that cannot be opened stands for a full disk.
  CHECK_FALSE(opened.value().write({{"a.csv", "new"}, {"no/such/b.csv", "x"}}).ok());
  CHECK(temporary.read("a.csv") == "old");
  CHECK(temporary.names() == std::vector<std::string>{"a.csv", "result.json"});
}

}  // namespace railyard::cli
