#include "topologies/fabric_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/text.h"
#include "topologies/import/host_names.h"
#include "topologies/import/text_lines.h"
#include "topologies/imported_hosts.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;

class Matcher {
 public:
  Matcher(const FabricSource& fabric, const MachineSpec& machine, const AdapterMap& names)
      : fabric_(fabric),
        machine_(machine),
        named_(names.all),
        by_host_(names.by_host),
        all_(hosts_of(fabric.graph)) {}

  Result<FabricMatch> run() {
    if (machine_.nics.empty())
      return bad_input("the machine has no NICs that a fabric could reach", machine_.name);
    if (all_.empty()) return bad_input("the fabric has no hosts", fabric_.name);
    if (!named_.empty()) {
      RAILYARD_TRY(take_named());
    } else if (tells_adapters(fabric_.graph)) {
      choose_nics();
    } else {
      spread_hosts();
    }
    RAILYARD_TRY(check_adapter_map(by_host_, all_, out_.nics.size(), "adapters by host"));
    RAILYARD_TRY(choose_hosts());
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string nic_name(std::size_t nic) const {
    return machine_.nic_names.empty() ? fmt::format("NIC {}", nic)
                                      : excerpt(machine_.nic_names[nic], 60);
  }

  void take_all_nics() {
    out_.nics.resize(machine_.nics.size());
    std::iota(out_.nics.begin(), out_.nics.end(), 0U);
  }

  Result<void> take_named() {
    if (named_.size() != machine_.nics.size())
      return bad_input(
          fmt::format("adapters by host: '*' has {} adapters, but the node has {} NICs",
                      named_.size(), machine_.nics.size()));
    take_all_nics();
    out_.adapters = named_;
    return {};
  }

  void spread_hosts() {
    take_all_nics();
    for (FabricHost& host : all_) host = with_all_nics(host, machine_.nics.size());
    out_.notes.emplace_back("the fabric's file tells no adapters: all NICs of a host in its leaf");
  }

  // The set of NICs that most hosts have cabled; of equally many hosts' the larger.
  void choose_nics() {
    std::map<std::vector<std::uint32_t>, std::size_t> sets;
    for (const FabricHost& host : all_) {
      if (by_host_.count(host.name) > 0) continue;
      std::vector<std::uint32_t> nics;
      for (std::uint32_t nic = 0; nic < machine_.nic_names.size(); ++nic)
        if (has(host, machine_.nic_names[nic])) nics.push_back(nic);
      if (!nics.empty()) ++sets[std::move(nics)];
    }
    const auto most = std::max_element(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second, a.first.size()) < std::pair(b.second, b.first.size());
    });
    if (most == sets.end()) {
      take_all_nics();
      if (by_host_.size() < all_.size())
        out_.notes.push_back(machine_.nic_names.empty()
                                 ? "the machine's file does not name its NICs; adapters are taken "
                                   "in the order of their names"
                                 : "no adapter of the fabric is called as a NIC of the machine (" +
                                       list_of(machine_.nic_names) +
                                       "); adapters are taken in the order of their names");
      return;
    }
    out_.nics = most->first;
    for (const std::uint32_t nic : out_.nics) out_.adapters.push_back(machine_.nic_names[nic]);
    for (std::uint32_t nic = 0; nic < machine_.nics.size(); ++nic)
      if (!std::binary_search(out_.nics.begin(), out_.nics.end(), nic))
        out_.not_cabled.push_back(nic_name(nic));
  }

  static bool has(const FabricHost& host, const std::string& adapter) {
    return std::any_of(host.ports.begin(), host.ports.end(),
                       [&](const HostPort& port) { return port.name == adapter; });
  }

  Result<void> choose_hosts() {
    FittingHosts fitting =
        fitting_hosts(all_, AdapterNames{out_.adapters, by_host_}, out_.nics.size());
    if (fitting.hosts.empty())
      return bad_input(fmt::format("no host of the fabric fits a node of {} NICs: {}",
                                   out_.nics.size(), list_of(fitting.left_out, 3)),
                       fabric_.name);
    out_.left_out = std::move(fitting.left_out);
    std::map<std::string, std::set<std::string>> used;
    for (const FabricHost& host : fitting.hosts) {
      out_.hosts.push_back(host.name);
      for (const HostPort& port : host.ports) used[host.name].insert(port.name);
    }
    count_unused(used);
    return {};
  }

  void count_unused(const std::map<std::string, std::set<std::string>>& used) {
    std::map<std::string, std::size_t> unused;
    for (const FabricHost& host : all_) {
      const auto mine = used.find(host.name);
      if (mine == used.end()) continue;
      for (const HostPort& port : host.ports)
        if (mine->second.count(port.name) == 0) ++unused[port.name];
    }
    std::vector<std::pair<std::string, std::size_t>> sorted(unused.begin(), unused.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return natural_less(a.first, b.first); });
    for (const auto& [name, hosts] : sorted)
      out_.not_of_node.push_back(
          fmt::format("{} (of {} host{})", excerpt(name, 60), hosts, hosts == 1 ? "" : "s"));
  }

  const FabricSource& fabric_;
  const MachineSpec& machine_;
  const std::vector<std::string>& named_;
  const HostAdapters& by_host_;
  std::vector<FabricHost> all_;
  FabricMatch out_;
};

}  // namespace

Result<FabricMatch> match_fabric(const FabricSource& fabric, const MachineSpec& machine,
                                 const AdapterMap& names) {
  return Matcher(fabric, machine, names).run();
}

MachineSpec with_nics(MachineSpec machine, const std::vector<std::uint32_t>& nics) {
  if (nics.size() == machine.nics.size()) return machine;
  std::vector<Parent> places;
  std::vector<sim::Bandwidth> rates;
  std::vector<std::string> names;
  for (const std::uint32_t nic : nics) {
    places.push_back(machine.nics[nic]);
    if (!machine.nic_rates.empty()) rates.push_back(machine.nic_rates[nic]);
    if (!machine.nic_names.empty()) names.push_back(machine.nic_names[nic]);
  }
  if (!rates.empty()) machine.nic.value = *std::max_element(rates.begin(), rates.end());
  machine.nics = std::move(places);
  machine.nic_rates = std::move(rates);
  machine.nic_names = std::move(names);
  machine.hardware.reset();  // which still has the others
  return machine;
}

}  // namespace railyard::topologies
