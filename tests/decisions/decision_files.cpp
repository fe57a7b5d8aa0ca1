#include "tests/decisions/decision_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/paths.h"
#include "topologies/import/nccl_xml.h"

namespace railyard::tests {
namespace {

namespace nccl = algorithms::nccl;

const std::filesystem::path kFolder =
    std::filesystem::path(RAILYARD_SHARED_DIR) / "reference/nccl-decisions";

DecisionFile load(const std::filesystem::path& path) {
  DecisionFile file;
  file.name = path.stem().string();
  std::ifstream stream(path);
  file.json = nlohmann::json::parse(stream);
  const nlohmann::json& inputs = file.json.at("inputs");

  const std::string topo = (kFolder / "topo" / inputs.at("topo").get<std::string>()).string();
  auto hardware = topologies::read_nccl_xml(topo);
  REQUIRE_MESSAGE(hardware.ok(), hardware.error().text());
  file.hardware = std::move(hardware).value();

  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : inputs.at("env").items())
    variables[name] = value.is_string() ? value.get<std::string>() : value.dump();
  auto environment = nccl::Environment::parse(variables);
  REQUIRE_MESSAGE(environment.ok(), environment.error().text());
  file.environment = std::move(environment).value();

  // The stand-in for NVML was never asked to refuse: only CUDA's answer depends on the input.
  file.capabilities.peer_access = inputs.at("p2p").get<int>() != 0;
  file.capabilities.multicast = inputs.at("multicast").get<int>() != 0;
  file.capabilities.collnet = inputs.at("collnet").get<int>() != 0;
  return file;
}

void collect_gpus(const std::vector<sim::HardwarePci>& list, std::vector<std::int32_t>& devs) {
  for (const sim::HardwarePci& pci : list) {
    if (pci.gpu) devs.push_back(pci.gpu->dev);
    collect_gpus(pci.children, devs);
  }
}

}  // namespace

nccl::NodeRequest DecisionFile::first_node() const {
  const nlohmann::json& inputs = json.at("inputs");
  const int hosts =
      std::min(inputs.at("nodes").get<int>(), inputs.at("hostsPerNvlinkDomain").get<int>());
  std::vector<std::int32_t> devs;
  for (const sim::HardwareCpu& cpu : hardware.cpus) collect_gpus(cpu.pci, devs);
  std::sort(devs.begin(), devs.end());

  nccl::NodeRequest request;
  request.comm_ranks = inputs.at("nRanks").get<int>();
  for (int host = 0; host < hosts; ++host) {
    request.inputs.hosts.push_back(&hardware);
    for (const std::int32_t dev : devs) {
      const auto rank = static_cast<std::int32_t>(request.inputs.ranks.size());
      request.inputs.ranks.push_back({rank, host, dev});
    }
  }
  return request;
}

const std::vector<DecisionFile>& decision_files() {
  static const std::vector<DecisionFile> files = [] {
    std::vector<std::filesystem::path> paths;
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder, absent))
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<DecisionFile> loaded;
    for (const auto& path : paths) loaded.push_back(load(path));
    return loaded;
  }();
  return files;
}

Comparison::~Comparison() { std::fputs(text().c_str(), stdout); }

std::string Comparison::text() const {
  std::string text = fmt::format("{}: {} of {} equal\n", what_, compared_ - different_, compared_);
  for (const std::string& difference : first_) text += "  " + difference + "\n";
  return text;
}

bool Comparison::near(double ours, double theirs, const std::string& where) {
  ++compared_;
  if (std::abs(ours - theirs) <= 1e-5 * std::max(1.0, std::abs(theirs))) return true;
  note(fmt::format("{}: {}, NCCL {}", where, ours, theirs));
  return false;
}

void Comparison::note(const std::string& difference) {
  constexpr std::size_t kShown = 12;
  ++different_;
  if (first_.size() < kShown) first_.push_back(difference);
}

}  // namespace railyard::tests
