#include "scenarios/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/sections.h"
#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

constexpr std::size_t kMaxAxisValues = 1'000;  // all axes together; each is decoded once to check

Result<void> decode_axis(const Entry& entry, const Place& place, Axis& out) {
  const Place values{&entry.value, fmt::format("{}.'{}'", place.path, printable(entry.key, 60))};
  RAILYARD_TRY(expect(values, Node::Kind::list));
  if (entry.value.items.empty()) return values.error("the list of values is empty");
  if (entry.key == "explore" || entry.key.starts_with("explore."))
    return values.error("an exploration cannot vary itself");
  for (std::size_t i = 0; i < entry.value.items.size(); ++i)
    if (entry.value.items[i].kind == Node::Kind::null)
      return values.item(i).error("a value is missing");
  out = {entry.key, entry.mark, entry.value.items};
  return {};
}

Setting setting(const Axis& axis, std::size_t value) {
  return {axis.path, to_flow_yaml(axis.values[value]), axis.values[value], axis.mark};
}

void remove(Node& map, std::string_view key) {
  std::erase_if(map.entries, [&](const Entry& entry) { return entry.key == key; });
}

}  // namespace

Result<void> decode(const Place& place, Exploration& out) {
  MapReader reader(place);
  const auto vary = reader.find_required("vary");
  reader.optional("objective", out.objective);
  RAILYARD_TRY(reader.finish());
  RAILYARD_TRY(expect(*vary, Node::Kind::map));
  std::size_t points = 1;
  std::size_t values = 0;
  for (const Entry& entry : vary->node->entries) {
    RAILYARD_TRY(decode_axis(entry, *vary, out.axes.emplace_back()));
    points *= entry.value.items.size();
    values += entry.value.items.size();
    if (points > kMaxExplorePoints || values > kMaxAxisValues)
      return vary->error(
          fmt::format("more than {} points or {} values", kMaxExplorePoints, kMaxAxisValues));
  }
  if (out.axes.empty()) return vary->error("nothing is varied");
  return {};
}

Result<void> check_axes(const Scenario& scenario) {
  for (const Axis& axis : scenario.explore->axes)
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
      const auto checked = scenario_at(scenario, {setting(axis, i)});
      if (checked.ok()) continue;
      Error error = checked.error();
      error.message = fmt::format("explore varies '{}' = {}: {}", printable(axis.path, 60),
                                  printable(to_flow_yaml(axis.values[i]), 60), error.message);
      return error;
    }
  return {};
}

std::vector<ExplorePoint> explore_points(const Scenario& scenario) {
  std::vector<ExplorePoint> points;
  if (!scenario.explore) return points;
  points.emplace_back();
  for (const Axis& axis : scenario.explore->axes) {
    std::vector<ExplorePoint> longer;
    for (const ExplorePoint& point : points)
      for (std::size_t i = 0; i < axis.values.size(); ++i) {
        longer.push_back(point);
        longer.back().push_back(setting(axis, i));
      }
    points = std::move(longer);
  }
  return points;
}

Result<Scenario> scenario_at(const Scenario& scenario, const ExplorePoint& point) {
  auto document = std::make_shared<Document>(*scenario.document);
  remove(document->root, "explore");
  for (const Setting& one : point)
    RAILYARD_TRY(set_value(document->root, one.path, one.node, one.mark));
  return decode_scenario(std::move(document), scenario.read_files);
}

}  // namespace railyard::scenarios
