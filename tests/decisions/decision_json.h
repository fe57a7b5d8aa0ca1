// NCCL's own decisions (reference/nccl-decisions/*.json): reading a file, and turning what it says
// of topology and search into the inputs of algorithms/nccl's plan.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "algorithms/nccl/comm.h"
#include "algorithms/nccl/environment.h"

namespace railyard::tests {

// All files, sorted by name; empty where the reference data is absent.
std::vector<std::filesystem::path> decision_files();

nlohmann::json read_decision(const std::filesystem::path& path);

// Every node is of one kind: what rank 0's node found.
algorithms::nccl::CommInputs comm_inputs(const nlohmann::json& decision);
algorithms::nccl::Environment decision_environment(const nlohmann::json& decision);

// "a, b, c" of numbers with seven digits, as the files print them.
std::string seven_digits(double value);

// Mismatches between what NCCL decided and what is computed here: how many were compared, the first
// few that differ.
class Comparison {
 public:
  explicit Comparison(std::string name) : name_(std::move(name)) {}
  void equal(const std::string& what, const std::string& expected, const std::string& actual);
  void equal(const std::string& what, std::int64_t expected, std::int64_t actual);
  [[nodiscard]] std::size_t compared() const { return compared_; }
  [[nodiscard]] std::size_t different() const { return different_; }
  [[nodiscard]] std::string first_differences() const { return text_; }

 private:
  std::string name_;
  std::string text_;
  std::size_t compared_ = 0;
  std::size_t different_ = 0;
};

}  // namespace railyard::tests
