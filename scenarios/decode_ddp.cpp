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

// The arguments of PowerSGDState, which belong to its hooks only; beside another hook that is named
// they are left alone, so that hooks can be compared by that one key.
void read_power_sgd(MapReader& reader, bool used, models::PowerSgdOptions& out) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  reader.optional("matrix_approximation_rank", out.matrix_approximation_rank, 1, 1'000'000);
  reader.optional("start_powerSGD_iter", out.start_iter, 0, kMost);
  reader.optional("min_compression_rate", out.min_compression_rate, 1e-9, 1e9);
  reader.optional("use_error_feedback", out.use_error_feedback);
  reader.optional("warm_start", out.warm_start);
  for (const char* key : {"matrix_approximation_rank", "start_powerSGD_iter",
                          "min_compression_rate", "use_error_feedback", "warm_start"})
    if (!used && !reader.has("comm_hook") && reader.has(key))
      reader.take(reader.find(key)->error("belongs to comm_hook: powerSGD or batched_powerSGD"));
  if (const auto valid = models::check(out); used && !valid.ok())
    reader.take(
        reader.find(reader.has("start_powerSGD_iter") ? "start_powerSGD_iter" : "comm_hook")
            ->error(valid.error().message));
}

void read_hook(MapReader& reader, models::HookOptions& out) {
  reader.optional("comm_hook", out.kind);
  const bool power_sgd =
      out.kind == models::CommHook::power_sgd || out.kind == models::CommHook::batched_power_sgd;
  read_power_sgd(reader, power_sgd, out.power_sgd);
  reader.optional("apply_optimizer_in_backward", out.optimizer_in_backward);
  if (out.optimizer_in_backward && out.kind != models::CommHook::none)
    reader.take(reader.find("apply_optimizer_in_backward")
                    ->error("DDP takes one communication hook, and this is one of its own: "
                            "comm_hook must be none"));
}

void check_join(MapReader& reader, const DdpSpec& spec) {
  if (spec.join.empty()) return;
  const Place list = *reader.find("join");
  if (spec.convert_sync_batchnorm)
    reader.take(list.error(
        "PyTorch cannot join ranks whose network has SyncBatchNorm layers: nobody shadows "
        "the collectives of their forward (convert_sync_batchnorm)"));
  for (std::size_t i = 0; i < spec.join.size(); ++i) {
    if (spec.join[i].iterations > spec.iterations)
      reader.take(list.item(i).error(
          fmt::format("a rank with inputs for {} iterations of {}; the others have all of them",
                      spec.join[i].iterations, spec.iterations)));
    for (std::size_t j = 0; j < i; ++j)
      if (spec.join[j].rank == spec.join[i].rank)
        reader.take(list.item(i).error(fmt::format("rank {} is named twice", spec.join[i].rank)));
  }
}

}  // namespace

Result<void> decode(const Place& place, JoinInputs& out) {
  MapReader reader(place);
  reader.required("rank", out.rank, 0U, 1U << 30);
  reader.required("iterations", out.iterations, 1, 1'000'000);
  return reader.finish();
}

Result<void> decode(const Place& place, DdpSpec& out) {
  MapReader reader(place);
  read_training(reader, out);
  read_buckets(reader, out.buckets);
  reader.optional("broadcast_buffers", out.broadcast_buffers);
  reader.optional("gradient_accumulation", out.gradient_accumulation, 1, 1'000'000);
  read_hook(reader, out.hook);
  reader.optional("convert_sync_batchnorm", out.convert_sync_batchnorm);
  reader.optional("join", out.join);
  if (const auto measured = reader.find("measured"))
    reader.take(decode_measured(*measured, out.measured.emplace()));
  check_join(reader, out);
  return finish_training(reader, out);
}

}  // namespace railyard::scenarios
