// PathTable: the paths NCCL keeps between the vertices that matter to it (GPUs, devices, network
// devices, CPUs, NVSwitches). A path is the list of links followed, the smallest bandwidth among
// them and the worst kind of step.
//
// Breadth first from every end: fewer links win, more bandwidth wins only among equals, and what
// was found first stays. A device passes traffic on to its own GPU only, or to one more device
// (NVB: one NVLink hop through a neighbour). Paths are directed: later steps change one direction
// only (PXN).
//
// Links are numbered by vertex, in the order of Vertex::links; link_of tells what a number means.
// Cost: ends x links. Source: facts 3.4, from NCCL 2.30.7 src/graph/paths.cc.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "algorithms/nccl/system.h"

namespace railyard::algorithms::nccl {

struct Path {
  sim::PathType type = sim::PathType::dis;
  float bandwidth = 0;
  std::vector<std::int32_t> links;  // numbers; empty: the same place, or no way

  [[nodiscard]] std::int32_t hops() const { return static_cast<std::int32_t>(links.size()); }
};

// An end of a path: kind and index among its kind.
struct PathEnd {
  VertexKind kind = VertexKind::gpu;
  std::int32_t index = 0;
};

class PathTable {
 public:
  PathTable() = default;
  // All direct paths. `through_devices`: false with NCCL_NVB_DISABLE.
  PathTable(const System& system, bool through_devices);

  [[nodiscard]] const Path& at(PathEnd from, PathEnd to) const { return paths_[place(from, to)]; }
  [[nodiscard]] Path& at(PathEnd from, PathEnd to) { return paths_[place(from, to)]; }

  // Whether the search from any end of this kind came near `from` at all: where not, NCCL has no
  // entry, not even a disconnected one.
  [[nodiscard]] bool any(PathEnd from, VertexKind to) const;

  struct Link {
    std::int32_t from = -1;  // vertices
    std::int32_t to = -1;
    sim::PathType type = sim::PathType::loc;
    float bandwidth = 0;
  };
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const Link& link_of(std::int32_t number) const {
    return links_[static_cast<std::size_t>(number)];
  }
  // The vertex after `step` links.
  [[nodiscard]] std::int32_t vertex_after(const Path& path, std::size_t step) const {
    return link_of(path.links[step]).to;
  }
  // The first link from one vertex to another, of that type; -1: none.
  [[nodiscard]] std::int32_t find_link(std::int32_t from, std::int32_t to,
                                       sim::PathType type) const;

 private:
  void search_from(const System& system, std::int32_t base, bool through_devices);
  [[nodiscard]] std::size_t end(PathEnd which) const {
    return offsets_[static_cast<std::size_t>(which.kind)] + static_cast<std::size_t>(which.index);
  }
  [[nodiscard]] std::size_t place(PathEnd from, PathEnd to) const {
    return end(from) * ends_ + end(to);
  }

  std::size_t ends_ = 0;
  std::array<std::size_t, kVertexKinds> offsets_{};
  std::vector<Path> paths_;
  std::vector<std::uint8_t> near_;  // per end and kind
  std::vector<Link> links_;
  std::vector<std::int32_t> first_link_;  // per vertex, and one more
};

}  // namespace railyard::algorithms::nccl
