#include "scenarios/fallback_loss.h"

#include <fmt/format.h>

#include <array>

namespace railyard::scenarios {
namespace {

// Variables that take a transport away when they are set to this.
struct Variable {
  const char* name;
  const char* value;
  const char* what;
};
constexpr std::array kVariables{Variable{"NCCL_IB_DISABLE", "1", "InfiniBand"},
                                Variable{"NCCL_NET", "Socket", "InfiniBand"},
                                Variable{"NCCL_P2P_DISABLE", "1", "peer-to-peer"},
                                Variable{"NCCL_SHM_DISABLE", "1", "shared memory"},
                                Variable{"NCCL_NET_GDR_LEVEL", "LOC", "GPUDirect RDMA"},
                                Variable{"NCCL_NET_GDR_LEVEL", "0", "GPUDirect RDMA"},
                                Variable{"NCCL_IB_DATA_DIRECT", "0", "Direct NIC"}};

bool takes_away(const NcclSetup& setup, const Variable& variable) {
  const auto found = setup.env.find(variable.name);
  return found != setup.env.end() && found->second == variable.value;
}

}  // namespace

std::string missing_transports(const NcclSetup& setup) {
  if (!setup.choose) return "";
  std::string text;
  const auto add = [&](std::string_view what) {
    if (text.find(what) != std::string::npos) return;
    text += text.empty() ? "" : ", ";
    text += what;
  };
  if (!setup.infiniband) add("InfiniBand");
  if (!setup.gpudirect) add("GPUDirect RDMA");
  if (!setup.p2p) add("peer-to-peer");
  for (const Variable& variable : kVariables)
    if (takes_away(setup, variable)) add(variable.what);
  return text;
}

std::optional<std::string> fallback_loss(const Scenario& scenario, const RunLimits& limits,
                                         sim::Duration with_fallback) {
  const std::string missing = missing_transports(scenario.nccl_setup);
  if (missing.empty()) return std::nullopt;
  Scenario whole = scenario;
  NcclSetup& setup = whole.nccl_setup;
  for (const Variable& variable : kVariables)
    if (takes_away(setup, variable)) setup.env.erase(variable.name);
  setup.infiniband = setup.gpudirect = setup.p2p = true;
  whole.cluster.overrides.direct_nic = uses_direct_nic(setup);
  RunOptions options;
  options.limits = limits;
  options.limits.progress = {};
  const auto result = run(whole, options);
  if (!result.ok() || result.value().outcome != sim::EventQueue::Outcome::drained ||
      !result.value().unfinished.empty())
    return std::nullopt;
  const double without = sim::to_seconds(objective_time(result.value()));
  const double with = sim::to_seconds(with_fallback);
  if (without <= 0) return std::nullopt;
  return fmt::format(
      "the fall-back's price: {:.4g} ms without {}, {:.4g} ms with it: {:.2f} times as long "
      "({:+.1f} %)",
      with * 1e3, missing, without * 1e3, with / without, (with / without - 1) * 100);
}

}  // namespace railyard::scenarios
