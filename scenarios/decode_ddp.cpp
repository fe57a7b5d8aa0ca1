// ddp: the arguments of DistributedDataParallel.
#include <fmt/format.h>

#include <charconv>

#include "scenarios/sections.h"
#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

constexpr double kMaxBucketMb = 1e6;

Result<void> decode_torch(const Place& place, models::TorchVersion& out) {
  std::string text;
  RAILYARD_TRY(decode(place, text));
  const char* end = text.data() + text.size();
  const auto [dot, failed] = std::from_chars(text.data(), end, out.major);
  if (failed == std::errc() && dot != end && *dot == '.') {
    const auto [stop, wrong] = std::from_chars(dot + 1, end, out.minor);
    const bool patch = stop != end && *stop == '.';
    if (wrong == std::errc() && (stop == end || patch) && out.major >= 1 && out.minor >= 0)
      return {};
  }
  return place.error(
      fmt::format("a PyTorch version like 2.4 is expected, not '{}'", printable(text, 40)));
}

void read_buckets(MapReader& reader, models::BucketOptions& out) {
  double cap = 0;
  sim::Bytes first;
  std::vector<double> caps;
  if (reader.optional("bucket_cap_mb", cap, 0.0, kMaxBucketMb)) out.bucket_cap_mb = cap;
  if (reader.optional("first_bucket_bytes", first)) out.first_bucket_bytes = first;
  if (reader.optional("bucket_cap_mb_list", caps)) {
    const Place list = *reader.find("bucket_cap_mb_list");
    for (std::size_t i = 0; i < caps.size(); ++i)
      if (!(caps[i] >= 0 && caps[i] <= kMaxBucketMb))
        reader.take(
            list.item(i).error(fmt::format("{} is out of range (0 to {})", caps[i], kMaxBucketMb)));
    if (caps.empty()) reader.take(list.error("the list is empty"));
    out.bucket_cap_mb_list = std::move(caps);
  }
  reader.optional("find_unused_parameters", out.find_unused_parameters);
  reader.optional("static_graph", out.static_graph);
  reader.optional("gradient_as_bucket_view", out.gradient_as_bucket_view);
  reader.optional("DDP_SET_LAST_BUCKET_CAP", out.ddp_set_last_bucket_cap);
  if (const auto torch = reader.find("torch")) reader.take(decode_torch(*torch, out.version));
}

Result<void> decode_measured(const Place& place, models::DdpMeasured& out) {
  MapReader reader(place);
  reader.optional("start", out.start);
  reader.optional("optimizer", out.optimizer);
  reader.optional("hook", out.hook);
  reader.optional("collective", out.collective);
  reader.optional("copy_back", out.copy_back);
  return reader.finish();
}

}  // namespace

Result<void> decode(const Place& place, DdpSpec& out) {
  MapReader reader(place);
  read_training(reader, out);
  read_buckets(reader, out.buckets);
  reader.optional("broadcast_buffers", out.broadcast_buffers);
  reader.optional("gradient_accumulation", out.gradient_accumulation, 1, 1'000'000);
  reader.optional("comm_hook", out.comm_hook);
  if (const auto measured = reader.find("measured"))
    reader.take(decode_measured(*measured, out.measured.emplace()));
  return finish_training(reader, out);
}

}  // namespace railyard::scenarios
