// Shared by the tests of scenarios/: texts in, error texts out, and a directory for files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.h"

namespace railyard::tests {

// The error's one-line text, or "no error".
std::string error_of(const scenarios::Result<scenarios::Scenario>& result);

// Of a text read as "s.yaml", without touching any other file.
std::string error_of(std::string_view text, std::vector<std::string> sets = {});

scenarios::Scenario scenario_of(std::string_view text, std::vector<std::string> sets = {});

// A complete scenario with `more` after its cluster block; line 4 is the first of `more`.
std::string with(std::string_view more);

// A fresh directory, removed with all it holds at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  // Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view text) const;
  [[nodiscard]] std::string path(const std::string& name) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace railyard::tests
