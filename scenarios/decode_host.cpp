// host: - the keys are listed in host.h.
#include "scenarios/host.h"

namespace railyard::scenarios {
namespace {

constexpr std::int64_t kMost = 1'000'000;

Result<void> decode(const Place& place, models::DataLoaderSpec& out) {
  MapReader reader(place);
  reader.required("batch_time", out.batch_time);
  reader.optional("workers", out.workers, 1, kMost);
  reader.optional("prefetch", out.prefetch, 1, 1000);
  return reader.finish();
}

Result<void> decode(const Place& place, CudaGraphsSpec& out) {
  MapReader reader(place);
  reader.optional("after", out.after, 0, kMost);
  reader.required("launch", out.launch);
  return reader.finish();
}

Result<void> decode(const Place& place, MemoryGrowthSpec& out) {
  MapReader reader(place);
  reader.required("size", out.size);
  reader.required("allocation", out.allocation);
  reader.optional("segment", out.segment);
  reader.optional("steps", out.steps, 1, kMost);
  reader.optional("registration", out.registration);
  RAILYARD_TRY(reader.finish());
  if (out.segment.raw() <= 0) return place.error("'segment' must be positive");
  return {};
}

Result<void> decode_ports(const Place& place, CommunicatorSpec& out) {
  std::vector<std::int64_t> range;
  RAILYARD_TRY(decode(place, range));
  constexpr std::int64_t kLastPort = 65'535;
  if (range.size() != 2 || range[0] < 1 || range[1] < range[0] || range[1] > kLastPort)
    return place.error("the first and the last port are expected, from 1 to 65535: [32768, 60999]");
  out.first_port = range[0];
  out.last_port = range[1];
  return {};
}

Result<void> decode(const Place& place, CommunicatorSpec& out) {
  MapReader reader(place);
  reader.required("create", out.create);
  reader.optional("fixed", out.fixed);
  reader.optional("per_rank", out.per_rank);
  if (const auto ports = reader.find("ports")) reader.take(decode_ports(*ports, out));
  return reader.finish();
}

Result<void> decode(const Place& place, NumaSpec& out) {
  MapReader reader(place);
  reader.required("bound_to", out.bound_to, 0, kMost);
  reader.required("factor", out.factor, 1.0, 1000.0);
  return reader.finish();
}

template <typename T>
void read_part(MapReader& reader, std::string_view key, std::optional<T>& out) {
  if (const auto place = reader.find(key)) reader.take(decode(*place, out.emplace()));
}

}  // namespace

Result<std::shared_ptr<const HostSpec>> decode_host(const Place& place) {
  MapReader reader(place);
  auto out = std::make_shared<HostSpec>();
  reader.optional("synchronize_every", out->synchronize_every, 0, kMost);
  if (const auto print = reader.find("print")) {
    MapReader keys(*print);
    keys.required("every", out->print_every, 1, kMost);
    keys.required("time", out->print_time);
    reader.take(keys.finish());
  }
  reader.optional("step_overhead", out->step_overhead);
  if (const auto loader = reader.find("data_loader"))
    reader.take(decode(*loader, out->data_loader));
  read_part(reader, "cuda_graphs", out->cuda_graphs);
  read_part(reader, "memory_growth", out->memory_growth);
  read_part(reader, "communicators", out->communicators);
  read_part(reader, "numa", out->numa);
  RAILYARD_TRY(reader.finish());
  return std::shared_ptr<const HostSpec>(std::move(out));
}

}  // namespace railyard::scenarios
