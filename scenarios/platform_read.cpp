#include <fmt/format.h>

#include "scenarios/platform.h"
#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

// The keys of a block in which null and absent mean the same.
class BlockReader {
 public:
  BlockReader(const Place& place, Platform& out) : place_(place), out_(out) {}

  template <typename T>
  void value(std::string_view key, T& target) {
    const auto at = find(key);
    if (!at || failed_) return;
    if (const auto read = decode(*at, target); !read.ok()) failed_ = read.error();
  }

  // A word of a table; others count as null.
  template <sim::TabledEnum E>
  void word(std::string_view key, std::optional<E>& target) {
    const auto at = find(key);
    if (!at || failed_) return;
    if (const auto parsed = sim::parse_enum<E>(at->node->scalar); parsed.ok()) {
      target = parsed.value();
    } else {
      out_.notes.push_back(fmt::format("{} '{}' is not known; taken as not stated", key,
                                       printable(at->node->scalar, 60)));
    }
  }

  [[nodiscard]] Result<void> finish() const {
    if (failed_) return *failed_;
    return {};
  }

 private:
  [[nodiscard]] std::optional<Place> find(std::string_view key) const {
    const Node* node = place_.node->find(key);
    if (node == nullptr || node->kind == Node::Kind::null) return std::nullopt;
    if (node->kind == Node::Kind::scalar && node->scalar.empty()) return std::nullopt;
    return Place{node, fmt::format("{}.{}", place_.path, key)};
  }

  const Place& place_;
  Platform& out_;
  std::optional<Error> failed_;
};

}  // namespace

Result<Platform> read_platform(const Place& place) {
  RAILYARD_TRY(expect(place, Node::Kind::map));
  Platform out;
  BlockReader reader(place, out);
  std::optional<Processes> threads;
  reader.value("name", out.name);
  reader.value("machine", out.machine);
  reader.value("nodes", out.nodes);
  reader.value("gpus_per_node", out.gpus_per_node);
  reader.word("processes", out.processes);
  reader.word("threads", threads);
  reader.word("intra", out.intra);
  reader.value("nics_per_node", out.nics_per_node);
  reader.value("nic_rate", out.nic_rate);
  reader.value("nic_measured", out.nic_measured);
  reader.word("fabric", out.fabric);
  reader.word("transport", out.transport);
  reader.value("nccl_used", out.nccl_used);
  reader.value("library", out.library);
  reader.value("predictable", out.predictable);
  reader.value("why_not", out.why_not);
  reader.value("spread", out.spread);
  reader.value("assumed", out.assumed);
  reader.value("nvlink_domain_gpus", out.nvlink_domain_gpus);
  RAILYARD_TRY(reader.finish());
  out.thread_per_gpu = threads == Processes::per_gpu;
  if (out.name.empty()) out.name = "platform";
  return out;
}

}  // namespace railyard::scenarios
