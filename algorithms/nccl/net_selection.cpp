#include "algorithms/nccl/net_selection.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

namespace railyard::algorithms::nccl {
namespace {

template <typename Visit>
void each_net(std::vector<sim::HardwareNic>& nics, const Visit& visit) {
  for (sim::HardwareNic& nic : nics)
    for (sim::HardwareNet& net : nic.nets) visit(net);
}

template <typename Visit>
void each_net(std::vector<sim::HardwarePci>& list, const Visit& visit) {
  for (sim::HardwarePci& pci : list) {
    each_net(pci.nics, visit);
    each_net(pci.children, visit);
  }
}

template <typename Visit>
void each_net(sim::Hardware& hardware, const Visit& visit) {
  for (sim::HardwareCpu& cpu : hardware.cpus) {
    each_net(cpu.pci, visit);
    each_net(cpu.nics, visit);
  }
}

}  // namespace

NetSelection::NetSelection(const Environment& environment) {
  const std::string text = environment.text("NCCL_IB_HCA").value_or("");
  std::string_view list = text;
  exclude_ = list.starts_with('^');
  if (exclude_) list.remove_prefix(1);
  exact_ = list.starts_with('=');
  if (exact_) list.remove_prefix(1);
  while (!list.empty()) {
    const std::string item(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const std::size_t colon = item.find(':');
    Name name{item.substr(0, colon), -1};
    if (colon != std::string::npos) name.port = std::atoi(item.c_str() + colon + 1);
    if (!name.text.empty()) names_.push_back(std::move(name));
  }
}

bool NetSelection::wanted(const sim::HardwareNet& net) const {
  const bool listed = std::any_of(names_.begin(), names_.end(), [&](const Name& name) {
    if (name.port >= 0 && name.port != net.port) return false;
    return exact_ ? net.name == name.text : net.name.starts_with(name.text);
  });
  return listed != exclude_;
}

sim::Hardware NetSelection::selected(const sim::Hardware& hardware) const {
  sim::Hardware chosen = hardware;
  std::map<std::int32_t, std::int32_t> numbers;  // old to new
  each_net(chosen, [&](sim::HardwareNet& net) {
    net.keep = net.keep && wanted(net);
    if (net.keep) numbers[net.dev] = 0;
  });
  std::int32_t next = 0;
  for (auto& [old, number] : numbers) number = next++;
  each_net(chosen, [&](sim::HardwareNet& net) {
    if (net.keep) net.dev = numbers[net.dev];
  });
  return chosen;
}

NodeInputs NetSelection::apply(const NodeInputs& inputs) {
  if (names_.empty()) return inputs;
  NodeInputs chosen = inputs;
  std::map<const sim::Hardware*, const sim::Hardware*> known;
  for (const sim::Hardware*& host : chosen.hosts) {
    const sim::Hardware*& made = known[host];
    if (made == nullptr) made = &changed_.emplace_back(selected(*host));
    host = made;
  }
  return chosen;
}

}  // namespace railyard::algorithms::nccl
