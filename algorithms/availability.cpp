#include "algorithms/availability.h"

#include <algorithm>
#include <string>
#include <vector>

namespace railyard::algorithms {
namespace {

using sim::Algorithm;
using sim::bad_input;
using sim::Collective;
using sim::CollectiveCall;
using sim::Protocol;
using sim::Result;

struct Entry {
  Algorithm algorithm;
  std::vector<Collective> collectives;
};

const std::vector<Entry>& table() {
  using C = Collective;
  static const std::vector<Entry> entries{
      {Algorithm::ring,
       {C::all_reduce, C::all_gather, C::reduce_scatter, C::broadcast, C::reduce, C::all_to_all,
        C::gather, C::scatter, C::send_recv}},
      {Algorithm::tree, {C::all_reduce}},
      {Algorithm::collnet_direct, {C::all_reduce}},
      {Algorithm::collnet_chain, {C::all_reduce}},
      {Algorithm::nvls, {C::all_reduce, C::all_gather, C::reduce_scatter}},
      {Algorithm::nvls_tree, {C::all_reduce}},
      {Algorithm::pat, {C::all_gather, C::reduce_scatter}},
      {Algorithm::hierarchical, {C::all_reduce}}};
  return entries;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string collectives_of(Algorithm algorithm) {
  std::vector<std::string> names;
  for (const Entry& entry : table())
    if (entry.algorithm == algorithm)
      for (const Collective collective : entry.collectives) names.emplace_back(to_text(collective));
  return joined(names);
}

std::string algorithms_of(Collective collective) {
  std::vector<std::string> names;
  for (const Entry& entry : table())
    if (has_algorithm(collective, entry.algorithm)) names.emplace_back(to_text(entry.algorithm));
  return joined(names);
}

sim::Error missing(Algorithm algorithm, const std::string& what) {
  return bad_input(std::string(to_text(algorithm)) + " " + what, "algorithm");
}

std::string group_text(const CommShape& shape) {
  return "this group has " + std::to_string(shape.ranks) + " ranks on " +
         std::to_string(shape.nodes) + (shape.nodes == 1 ? " node" : " nodes");
}

Result<void> check_nvls(const CollectiveCall& call, const CommShape& shape,
                        const sim::Heads& heads) {
  if (shape.nodes != 1)
    return missing(call.algorithm, "needs one node (NVLSTree serves more); " + group_text(shape));
  const std::size_t count = heads.nodes.front().heads.size();
  if (count < 2 || count > kMaxNvlsHeads)
    return missing(call.algorithm, "needs 2 to " + std::to_string(kMaxNvlsHeads) +
                                       " heads; the channels have " + std::to_string(count));
  if (call.collective != Collective::all_reduce && count != shape.ranks)
    return missing(call.algorithm, "for " + std::string(to_text(call.collective)) +
                                       " needs every rank to be a head; " + std::to_string(count) +
                                       " of " + std::to_string(shape.ranks) + " ranks are");
  return {};
}

Result<void> check_switches(const CollectiveCall& call, const CommShape& shape,
                            const sim::Heads& heads) {
  const Algorithm algorithm = call.algorithm;
  const auto has_nvswitch = [](const sim::HeadNode& node) {
    return node.ranks.size() == 1 || node.nvswitch.valid();
  };
  if (heads.nodes.empty() || heads.nodes.front().heads.empty())
    return missing(algorithm, "needs channels with heads; the channels of this group have none");
  const bool collnet =
      algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
  if (algorithm != Algorithm::collnet_chain && !std::ranges::all_of(heads.nodes, has_nvswitch))
    return missing(algorithm, "needs an NVSwitch in every node");
  if (algorithm == Algorithm::nvls) return check_nvls(call, shape, heads);
  if (shape.nodes < 2) return missing(algorithm, "needs at least two nodes; " + group_text(shape));
  if (!collnet) return {};
  if (heads.switches.empty())
    return missing(algorithm, "needs a fabric switch in which all nodes meet; there is none");
  for (const sim::HeadNode& node : heads.nodes)
    if (node.ranks.size() > kMaxCollnetRanksPerNode)
      return missing(algorithm, "needs at most " + std::to_string(kMaxCollnetRanksPerNode) +
                                    " ranks per node; " + group_text(shape));
  return {};
}

Result<void> check_hierarchical(const CommShape& shape, const sim::Heads& heads) {
  if (shape.nodes < 2)
    return missing(Algorithm::hierarchical, "needs at least two nodes; " + group_text(shape));
  const bool equal = std::ranges::all_of(heads.nodes, [&](const sim::HeadNode& node) {
    return node.ranks.size() * shape.nodes == shape.ranks && node.ranks.size() >= 2;
  });
  if (heads.nodes.size() != shape.nodes || !equal)
    return missing(Algorithm::hierarchical,
                   "needs as many ranks on every node, at least 2; " + group_text(shape));
  return {};
}

}  // namespace

bool has_algorithm(Collective collective, Algorithm algorithm) {
  return std::ranges::any_of(table(), [&](const Entry& entry) {
    return entry.algorithm == algorithm &&
           std::ranges::find(entry.collectives, collective) != entry.collectives.end();
  });
}

Result<void> check_algorithm(const CollectiveCall& call, const CommShape& shape,
                             const sim::Channels& channels) {
  const Algorithm algorithm = call.algorithm;
  if (algorithm == Algorithm::custom)
    return missing(algorithm, "is for schedules from files, which a communicator does not make");
  if (!has_algorithm(call.collective, algorithm))
    return missing(algorithm, "is for " + collectives_of(algorithm) + " only; " +
                                  std::string(to_text(call.collective)) + " has " +
                                  algorithms_of(call.collective));
  if (algorithm == Algorithm::ring) return {};
  const sim::Channel& channel = channels.front();
  if (algorithm == Algorithm::tree)
    return channel.tree.empty() && shape.ranks > 1
               ? Result<void>(
                     bad_input("Tree: the channels of this group have no trees", "algorithm"))
               : Result<void>();
  if (call.protocol != Protocol::simple && call.protocol != Protocol::plain)
    return bad_input(std::string(to_text(algorithm)) + " has no " +
                         std::string(to_text(call.protocol)) + "; expected Simple or plain",
                     "protocol");
  if (shape.ranks == 1) return {};
  if (algorithm == Algorithm::pat)
    return shape.ranks == shape.nodes
               ? Result<void>()
               : Result<void>(missing(algorithm, "needs one rank per node; " + group_text(shape)));
  if (algorithm == Algorithm::hierarchical) return check_hierarchical(shape, channel.heads);
  return check_switches(call, shape, channel.heads);
}

}  // namespace railyard::algorithms
