#include "tools/cli/nccl_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "scenarios/document.h"
#include "topologies/import/nccl_xml.h"

namespace railyard::cli {
namespace {

using algorithms::nccl::ClusterHost;
using algorithms::nccl::ClusterRequest;
using algorithms::nccl::Environment;
using nlohmann::json;
using sim::Result;

struct FoundGpus {
  std::vector<std::int32_t> devs;  // ascending
  std::int32_t highest_sm = 0;
};

void collect(const std::vector<sim::HardwarePci>& list, FoundGpus& out) {
  for (const sim::HardwarePci& pci : list) {
    if (pci.gpu) {
      out.devs.push_back(pci.gpu->dev);
      out.highest_sm = std::max(out.highest_sm, pci.gpu->sm);
    }
    collect(pci.children, out);
  }
}

FoundGpus gpus_of(const sim::Hardware& hardware) {
  FoundGpus out;
  for (const sim::HardwareCpu& cpu : hardware.cpus) collect(cpu.pci, out);
  std::ranges::sort(out.devs);
  return out;
}

std::vector<ClusterHost> hosts_of(const UniformHosts& uniform,
                                  const std::vector<std::int32_t>& devs) {
  std::vector<ClusterHost> hosts;
  std::int32_t rank = 0;
  for (std::int32_t h = 0; h < uniform.hosts; ++h) {
    ClusterHost& host = hosts.emplace_back();
    if (uniform.hosts_per_domain > 1) host.domain = h / uniform.hosts_per_domain;
    for (const std::int32_t dev : devs) host.ranks.push_back({rank++, dev});
  }
  return hosts;
}

// The value of a key, converted; a missing key leaves `out` alone.
template <typename T>
Result<void> take(const json& block, const char* key, const std::string& file, T& out) {
  const auto found = block.find(key);
  if (found == block.end()) return {};
  try {
    out = found->get<T>();
  } catch (const json::exception& error) {
    return sim::bad_input(error.what(), fmt::format("{}: inputs.{}", file, key));
  }
  return {};
}

Result<void> take_env(const json& block, const std::string& file, UniformHosts& out) {
  const auto found = block.find("env");
  if (found == block.end()) return {};
  const std::string where = file + ": inputs.env";
  if (!found->is_object()) return sim::bad_input("a map of NCCL_* variables is expected", where);
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string() && !value.is_number_integer())
      return sim::bad_input("a text or whole number is expected", where + "." + name);
    out.env[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return {};
}

Result<void> take_numbers(const json& block, const std::string& file, UniformHosts& out) {
  constexpr std::int32_t kMostHosts = 1'000'000;
  std::int32_t p2p = 1;
  std::int32_t multicast = -1;
  std::int32_t collnet = 0;
  auto type = static_cast<std::int32_t>(out.type);
  RAILYARD_TRY(take(block, "nodes", file, out.hosts));
  RAILYARD_TRY(take(block, "hostsPerNvlinkDomain", file, out.hosts_per_domain));
  RAILYARD_TRY(take(block, "p2p", file, p2p));
  RAILYARD_TRY(take(block, "multicast", file, multicast));
  RAILYARD_TRY(take(block, "collnet", file, collnet));
  RAILYARD_TRY(take(block, "dtype", file, type));
  if (out.hosts < 1 || out.hosts > kMostHosts || out.hosts_per_domain < 1)
    return sim::bad_input("nodes and hostsPerNvlinkDomain must be positive", file + ": inputs");
  constexpr auto kLastType = static_cast<std::int32_t>(algorithms::nccl::DataType::float8e5m2);
  if (type < 0 || type > kLastType)
    return sim::bad_input(fmt::format("NCCL's types are 0 to {}", kLastType),
                          file + ": inputs.dtype");
  out.p2p = p2p != 0;
  if (multicast >= 0) out.multicast = multicast != 0;
  out.collnet = collnet != 0;
  out.type = static_cast<algorithms::nccl::DataType>(type);
  return {};
}

}  // namespace

Result<UniformHosts> read_inputs(const std::string& path) {
  RAILYARD_ASSIGN(const std::string text, scenarios::read_text_file(path));
  json document;
  try {
    document = json::parse(text);
  } catch (const json::exception& error) {
    return sim::bad_input(error.what(), path);
  }
  const auto block = document.is_object() ? document.find("inputs") : document.end();
  if (block == document.end() || !block->is_object())
    return sim::bad_input("an object with a map 'inputs' is expected", path);
  UniformHosts out;
  std::string topology;
  RAILYARD_TRY(take(*block, "topo", path, topology));
  if (topology.empty()) return sim::bad_input("the key 'topo' is missing", path + ": inputs");
  out.topology = (std::filesystem::path(path).parent_path() / "topo" / topology).string();
  RAILYARD_TRY(take(*block, "nccl", path, out.version));
  RAILYARD_TRY(take_numbers(*block, path, out));
  RAILYARD_TRY(take_env(*block, path, out));
  return out;
}

Result<NcclPlan> plan_uniform(const UniformHosts& uniform) {
  NcclPlan plan;
  ClusterRequest request;
  RAILYARD_ASSIGN(sim::Hardware hardware, topologies::read_nccl_xml(uniform.topology));
  const FoundGpus gpus = gpus_of(hardware);
  if (gpus.devs.empty())
    return sim::bad_input("the file lists no GPUs, so NCCL would see none", uniform.topology);
  request.hardware.push_back(std::move(hardware));
  request.hosts = hosts_of(uniform, gpus.devs);
  constexpr std::int32_t kHopper = 90;
  request.capabilities.peer_access = uniform.p2p;
  request.capabilities.multicast = uniform.multicast.value_or(gpus.highest_sm >= kHopper);
  request.capabilities.collnet = uniform.collnet;
  request.collnet = {.present = uniform.collnet,
                     .enabled = uniform.collnet,
                     .all_gather = uniform.collnet,
                     .reduce_scatter = uniform.collnet};
  if (!uniform.version.empty()) {
    RAILYARD_ASSIGN(request.version, algorithms::nccl::parse_version(uniform.version));
  }
  RAILYARD_ASSIGN(plan.env, Environment::parse(uniform.env));
  RAILYARD_ASSIGN(plan.cluster, plan_cluster(request, plan.env));
  plan.warnings = plan.env.warnings();
  plan.type = uniform.type;
  plan.title = fmt::format("{} x {}, {} ranks", uniform.hosts,
                           std::filesystem::path(uniform.topology).filename().string(),
                           plan.cluster.comm.info.ranks);
  return plan;
}

}  // namespace railyard::cli
