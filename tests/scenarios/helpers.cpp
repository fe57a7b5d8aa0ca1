#include "tests/scenarios/helpers.h"

#include <doctest/doctest.h>
#include <stdlib.h>  // mkdtemp

#include <fstream>
#include <system_error>

namespace railyard::tests {

std::string error_of(const scenarios::Result<scenarios::Scenario>& result) {
  return result.ok() ? "no error" : result.error().text();
}

std::string error_of(std::string_view text, std::vector<std::string> sets) {
  return error_of(scenarios::scenario_from_text(text, "s.yaml",
                                                {.sets = std::move(sets), .read_files = false}));
}

scenarios::Scenario scenario_of(std::string_view text, std::vector<std::string> sets) {
  auto result =
      scenarios::scenario_from_text(text, "s.yaml", {.sets = std::move(sets), .read_files = false});
  REQUIRE_MESSAGE(result.ok(), error_of(result));
  return std::move(result).value();
}

std::string with(std::string_view more) {
  return "railyard: 1\ncluster: {machine: hgx-h100, nodes: 2,\n          fabric: {kind: "
         "switch}}\n" +
         std::string(more);
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "railyard-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  directory_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, std::string_view text) const {
  const std::filesystem::path file = directory_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

std::string TemporaryDirectory::path(const std::string& name) const {
  return (directory_ / name).string();
}

}  // namespace railyard::tests
