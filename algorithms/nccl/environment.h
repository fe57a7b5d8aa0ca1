// Environment: the NCCL_* variables of a run. Values keep NCCL's own syntax and are read the way
// NCCL reads them (strtoll with base 0, whole string; a value it cannot read is ignored and the
// default used). What a variable means is said where it is used.
//
//   RAILYARD_ASSIGN(const Environment env, Environment::parse({{"NCCL_CROSS_NIC", "0"}}));
//   env.integer("NCCL_CROSS_NIC", 2) == 0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/channel_graph.h"
#include "sim/result.h"

namespace railyard::algorithms::nccl {

class Environment {
 public:
  Environment() = default;

  // Never fails for a value: unknown names, values that NCCL would ignore and obsolete names become
  // warnings. Error: a name that does not start with NCCL_.
  static sim::Result<Environment> parse(const std::map<std::string, std::string>& variables);

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  // Unset or empty = nullopt.
  [[nodiscard]] std::optional<std::string> text(std::string_view name) const;
  // NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL: a path type by name, or NCCL's old integers
  // (0 LOC, 1 PIX, 2 PXB, 3 PHB, >= 4 SYS).
  [[nodiscard]] std::optional<sim::PathType> level(std::string_view name) const;

  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& variables() const {
    return variables_;
  }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::map<std::string, std::string, std::less<>> variables_;
  std::vector<std::string> warnings_;
};

// Variables this program gives a meaning to, with one line each (for help and for hints).
struct KnownVariable {
  std::string_view name;
  std::string_view meaning;
};
const std::vector<KnownVariable>& known_variables();

}  // namespace railyard::algorithms::nccl
