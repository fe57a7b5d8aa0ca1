#include "scenarios/where.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "scenarios/bind.h"

namespace railyard::scenarios {
namespace {

const Node kNowhere;

// The first step of a path: a key, or an index in brackets. Moves past it.
std::string_view take_step(std::string_view& path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  const std::size_t end =
      path.starts_with('[') ? path.find(']') + 1 : std::min(path.find_first_of(".["), path.size());
  const std::string_view step = path.substr(0, end);
  path.remove_prefix(end);
  return step;
}

const Node* child(const Node& node, std::string_view step) {
  if (!step.starts_with('[')) return node.kind == Node::Kind::map ? node.find(step) : nullptr;
  std::size_t index = 0;
  std::from_chars(step.data() + 1, step.data() + step.size() - 1, index);
  return node.kind == Node::Kind::list && index < node.items.size() ? &node.items[index] : nullptr;
}

// Flows and patterns are listed together in the file.
Place where_traffic(const Scenario& scenario, bool pattern, std::size_t index) {
  const Place all = where(scenario, "traffic");
  if (all.node->kind != Node::Kind::list) return all;
  for (std::size_t i = 0; i < all.node->items.size(); ++i)
    if ((all.node->items[i].find("pattern") != nullptr) == pattern && index-- == 0)
      return all.item(i);
  return all;
}

}  // namespace

Place where(const Scenario& scenario, std::string_view path) {
  if (!scenario.document) return {&kNowhere, std::string(path)};
  Place place{&scenario.document->root, ""};
  for (std::string_view rest = path; !rest.empty();) {
    const std::string_view step = take_step(rest);
    const Node* next = child(*place.node, step);
    if (next == nullptr) break;
    place = {next, std::string(path.substr(0, path.size() - rest.size()))};
  }
  return place;
}

Error at_path(const Scenario& scenario, std::string_view path, const Error& error) {
  const std::string full =
      error.where.empty() ? std::string(path) : fmt::format("{}.{}", path, error.where);
  return at(where(scenario, full), {error.code, error.message, {}});
}

Error at_call(const Scenario& scenario, std::string_view path, sim::Bytes size,
              const Error& error) {
  if (error.where != "algorithm" && error.where != "protocol")
    return at(where(scenario, path), error);
  if (scenario.backend != Backend::nccl)
    return at_path(scenario, "backend", {error.code, error.message, {}});
  if (scenario.nccl.empty()) return at_path(scenario, "nccl", error);
  const bool list = where(scenario, "nccl").node->kind == Node::Kind::list;
  const std::size_t index = choice_index(scenario, size);
  return at_path(scenario, list ? fmt::format("nccl[{}]", index) : "nccl", error);
}

Result<std::vector<Flow>> traffic_of(const Scenario& scenario, std::size_t world) {
  const auto ranks = static_cast<std::uint32_t>(world);
  const auto check_all = [&](const auto& items, bool patterns) -> Result<void> {
    for (std::size_t i = 0; i < items.size(); ++i)
      if (const auto fits = check_traffic(items[i], ranks); !fits.ok())
        return at(where_traffic(scenario, patterns, i), fits.error());
    return {};
  };
  RAILYARD_TRY(check_all(scenario.traffic.flows, false));
  RAILYARD_TRY(check_all(scenario.traffic.patterns, true));
  auto flows = expand_traffic(scenario.traffic, ranks, scenario.seed);
  if (!flows.ok()) return at_path(scenario, "traffic", flows.error());
  return flows;
}

}  // namespace railyard::scenarios
