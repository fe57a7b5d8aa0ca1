#include "algorithms/nccl/path_table.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace railyard::algorithms::nccl {
namespace {

using sim::PathType;

// The kinds that are ends of paths, in the order NCCL searches from them.
constexpr std::array kEnds{VertexKind::cpu, VertexKind::device, VertexKind::gpu, VertexKind::net,
                           VertexKind::nvs};

bool is_end(VertexKind kind) { return std::find(kEnds.begin(), kEnds.end(), kind) != kEnds.end(); }

// One search: the way back to the base from every vertex reached so far.
class Search {
 public:
  Search(const System& system, const PathTable& table, std::int32_t base, bool through_devices)
      : system_(system), table_(table), base_(base), through_devices_(through_devices) {
    const Vertex& start = system.at(base);
    // From a GPU the way to its own device counts as a link.
    free_hops_ = start.kind == VertexKind::gpu ? 2 : 1;
    own_device_ = start.kind == VertexKind::gpu ? start.device : base;
  }

  void run(std::vector<Path>& found, std::vector<std::uint8_t>& near) {
    found[static_cast<std::size_t>(base_)] = {PathType::loc, kLocalBandwidth, {}};
    near[static_cast<std::size_t>(base_)] = 1;
    std::vector<std::int32_t> level{base_};
    while (!level.empty()) {
      std::vector<std::int32_t> next;
      for (const std::int32_t vertex : level) spread(vertex, found, near, next);
      level = std::move(next);
    }
  }

 private:
  void spread(std::int32_t vertex, std::vector<Path>& found, std::vector<std::uint8_t>& near,
              std::vector<std::int32_t>& next) const {
    for (const SystemLink& link : system_.at(vertex).links) {
      near[static_cast<std::size_t>(link.to)] = 1;
      const bool known = std::find(next.begin(), next.end(), link.to) != next.end();
      if (step(found, vertex, link) && !known) next.push_back(link.to);
    }
  }

  bool step(std::vector<Path>& found, std::int32_t vertex, const SystemLink& link) const {
    const Path& path = found[static_cast<std::size_t>(vertex)];
    Path& beyond = found[static_cast<std::size_t>(link.to)];
    const float bandwidth = std::min(path.bandwidth, link.bandwidth);
    if (!passes(path, vertex, link)) return false;
    if (beyond.bandwidth >= bandwidth) return false;
    if (beyond.bandwidth != 0 && beyond.hops() <= path.hops()) return false;

    Path longer;
    longer.links.reserve(path.links.size() + 1);
    longer.links.push_back(table_.find_link(link.to, vertex, link.type));
    RAILYARD_CHECK(longer.links.front() >= 0, "every link of a system has its way back");
    longer.links.insert(longer.links.end(), path.links.begin(), path.links.end());
    longer.bandwidth = bandwidth;
    longer.type = std::max(path.type, step_type(path, vertex, link, longer.hops()));
    beyond = std::move(longer);
    return true;
  }

  // A device that is not the base's own hands on to its GPUs, or over NVLink to one more device.
  [[nodiscard]] bool passes(const Path& path, std::int32_t vertex, const SystemLink& link) const {
    if (vertex == own_device_ || system_.at(vertex).kind != VertexKind::device) return true;
    const VertexKind to = system_.at(link.to).kind;
    if (link.type == PathType::loc && to == VertexKind::gpu) return true;
    return through_devices_ && link.type == PathType::nvl && to == VertexKind::device &&
           path.hops() <= free_hops_;
  }

  [[nodiscard]] PathType step_type(const Path& path, std::int32_t vertex, const SystemLink& link,
                                   std::int32_t hops) const {
    const VertexKind here = system_.at(vertex).kind;
    const VertexKind there = system_.at(link.to).kind;
    PathType type = link.type == PathType::net ? PathType::loc : link.type;
    if (here == VertexKind::pci && there == VertexKind::pci) type = PathType::pxb;
    if (link.type == PathType::pix && (here == VertexKind::cpu || there == VertexKind::cpu))
      type = PathType::phb;
    if (here == VertexKind::device && path.type == PathType::nvl && type == PathType::nvl &&
        hops > free_hops_)
      type = PathType::nvb;
    return type;
  }

  const System& system_;
  const PathTable& table_;
  std::int32_t base_;
  bool through_devices_;
  std::int32_t free_hops_ = 1;
  std::int32_t own_device_ = -1;
};

}  // namespace

PathTable::PathTable(const System& system, bool through_devices) {
  for (std::size_t v = 0; v < system.vertices.size(); ++v) {
    first_link_.push_back(static_cast<std::int32_t>(links_.size()));
    for (const SystemLink& link : system.vertices[v].links)
      links_.push_back({static_cast<std::int32_t>(v), link.to, link.type, link.bandwidth});
  }
  first_link_.push_back(static_cast<std::int32_t>(links_.size()));

  for (const VertexKind kind : kEnds) {
    offsets_[static_cast<std::size_t>(kind)] = ends_;
    ends_ += system.all(kind).size();
  }
  paths_.resize(ends_ * ends_);
  near_.assign(ends_ * kVertexKinds, 0);
  for (const VertexKind kind : kEnds)
    for (const std::int32_t base : system.all(kind)) search_from(system, base, through_devices);
}

void PathTable::search_from(const System& system, std::int32_t base, bool through_devices) {
  std::vector<Path> found(system.vertices.size());
  std::vector<std::uint8_t> near(system.vertices.size(), 0);
  Search(system, *this, base, through_devices).run(found, near);

  const Vertex& start = system.at(base);
  for (std::size_t v = 0; v < system.vertices.size(); ++v) {
    const Vertex& vertex = system.vertices[v];
    if (!is_end(vertex.kind) || vertex.index < 0) continue;
    const PathEnd from{vertex.kind, vertex.index};
    at(from, {start.kind, start.index}) = std::move(found[v]);
    if (near[v] != 0) near_[end(from) * kVertexKinds + static_cast<std::size_t>(start.kind)] = 1;
  }
}

bool PathTable::any(PathEnd from, VertexKind to) const {
  return near_[end(from) * kVertexKinds + static_cast<std::size_t>(to)] != 0;
}

std::int32_t PathTable::find_link(std::int32_t from, std::int32_t to, PathType type) const {
  const auto begin = links_.begin() + first_link_[static_cast<std::size_t>(from)];
  const auto end = links_.begin() + first_link_[static_cast<std::size_t>(from) + 1];
  const auto found = std::find_if(
      begin, end, [&](const Link& link) { return link.to == to && link.type == type; });
  return found == end ? -1 : static_cast<std::int32_t>(found - links_.begin());
}

}  // namespace railyard::algorithms::nccl
