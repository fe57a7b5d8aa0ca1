// The files of reference/nccl-decisions: what NCCL's own code decided, and the inputs to decide it
// again.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/nccl/environment.h"
#include "algorithms/nccl/node_topology.h"
#include "sim/hardware.h"

namespace railyard::tests {

struct DecisionFile {
  std::string name;  // without ".json"
  nlohmann::json json;
  sim::Hardware hardware;  // of every host
  algorithms::nccl::Environment environment;
  algorithms::nccl::Capabilities capabilities;

  // Rank 0's node. The hosts point to `hardware`.
  [[nodiscard]] algorithms::nccl::NodeRequest first_node() const;
};

// All files, or none where the reference data is absent. A file that cannot be read fails the test.
const std::vector<DecisionFile>& decision_files();

// Counts what was compared, keeps the first differences.
class Comparison {
 public:
  explicit Comparison(std::string what) : what_(std::move(what)) {}
  ~Comparison();

  template <typename A, typename B>
  bool equal(const A& ours, const B& theirs, const std::string& where) {
    ++compared_;
    if (ours == theirs) return true;
    note(where + ": " + nlohmann::json(ours).dump() + ", NCCL " + nlohmann::json(theirs).dump());
    return false;
  }
  // The files have six significant digits.
  bool near(double ours, double theirs, const std::string& where);

  [[nodiscard]] bool all_equal() const { return compared_ > 0 && different_ == 0; }
  [[nodiscard]] std::string text() const;

 private:
  void note(const std::string& difference);
  std::string what_;
  std::size_t compared_ = 0;
  std::size_t different_ = 0;
  std::vector<std::string> first_;
};

}  // namespace railyard::tests
