#include "models/ddp/comm_hook.h"

#include <algorithm>

#include "models/workload/layers.h"

namespace railyard::models {
namespace {

using sim::Kernel;

constexpr std::int64_t kHalf = 2;
constexpr std::int64_t kLargestGramSchmidt = 2;  // columns; QR above, if not in half precision

bool compresses_elements(const HookBucket& bucket, const HookOptions& options) {
  return (options.kind == CommHook::fp16_compress || options.kind == CommHook::bf16_compress) &&
         bucket.element_size > kHalf;
}

bool is_power_sgd(const HookOptions& options) {
  return options.kind == CommHook::power_sgd || options.kind == CommHook::batched_power_sgd;
}

// PowerSGDState.iter counts the iterations that are over.
bool compresses_now(const HookOptions& options, std::int64_t iteration) {
  return is_power_sgd(options) && iteration > options.power_sgd.start_iter;
}

// Writes kernels of one bucket; sizes in elements.
struct HookWriter {
  const HookBucket& bucket;
  const KernelModel& kernels;
  sim::Trace& trace;

  void move(std::vector<Kernel>& out, std::int64_t elements, std::string_view name) const {
    if (elements > 0)
      out.push_back(named(kernels.move(sim::bytes(elements * bucket.element_size)),
                          trace.name(std::string(name))));
  }
  // An n x r matrix with orthonormal columns.
  void orthogonalize(std::vector<Kernel>& out, std::int64_t rows, std::int64_t columns) const {
    if (columns > kLargestGramSchmidt && bucket.element_size > kHalf) {
      for (int kernel = 0; kernel < 2; ++kernel) move(out, rows * columns * (columns + 1), "qr");
      return;
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      move(out, rows, "gram-schmidt");
      move(out, 2 * rows, "gram-schmidt");
      const std::int64_t rest = (columns - c - 1) * rows;
      for (const std::int64_t traffic : {2 * rest + rows, rest, rest + rows, 3 * rest})
        if (rest > 0) move(out, traffic, "gram-schmidt");
    }
  }
  void feed_error_back(std::vector<Kernel>& out, std::int64_t elements, bool first) const {
    move(out, first ? elements : 3 * elements, first ? "zero error" : "add error");
    move(out, 2 * elements, "keep gradient");
  }
};

std::vector<Kernel> compute_p(const HookWriter& writer, const std::vector<LowRank>& matrices,
                              bool random_q) {
  std::vector<Kernel> out;
  for (const LowRank& matrix : matrices) {
    if (random_q) writer.move(out, matrix.q(), "copy random q");
    writer.orthogonalize(out, matrix.columns, matrix.rank);
  }
  for (const LowRank& matrix : matrices)
    writer.move(out, matrix.elements() + matrix.p() + matrix.q(), "compute p");
  return out;
}

std::vector<Kernel> compute_q(const HookWriter& writer, const std::vector<LowRank>& matrices) {
  std::vector<Kernel> out;
  for (const LowRank& matrix : matrices) writer.orthogonalize(out, matrix.rows, matrix.rank);
  for (const LowRank& matrix : matrices)
    writer.move(out, matrix.elements() + matrix.p() + matrix.q(), "compute q");
  return out;
}

void decompress(const HookWriter& writer, const std::vector<LowRank>& matrices, BucketHook& hook) {
  std::int64_t q = 0;
  for (const LowRank& matrix : matrices) q += matrix.q();
  writer.move(hook.after, 2 * q, "divide q");
  for (const LowRank& matrix : matrices)
    writer.move(hook.after, matrix.elements() + matrix.p() + matrix.q(), "decompress");
  hook.device_synchronize = true;
}

struct PowerSgdPhase {
  bool error_feedback = true;
  bool first = false;  // that compresses
  bool random_q = false;
};

BucketHook power_sgd(const HookWriter& writer, const HookOptions& options,
                     const PowerSgdPhase& phase) {
  const PowerSgdBucket split = power_sgd_bucket(writer.bucket.shapes, options.power_sgd);
  const std::int64_t elements = writer.bucket.elements;
  BucketHook hook;
  hook.before.resize(3);
  if (phase.error_feedback) writer.feed_error_back(hook.before[0], elements, phase.first);
  writer.move(hook.before[0], 2 * split.uncompressed_elements(), "pack uncompressed");
  std::ranges::copy(compute_p(writer, split.compressed, phase.random_q),
                    std::back_inserter(hook.before[0]));
  writer.move(hook.before[1], 2 * split.uncompressed_elements(), "divide uncompressed");
  for (const std::int64_t tensor : split.uncompressed)
    writer.move(hook.before[1], 2 * tensor, "unpack uncompressed");
  hook.before[2] = compute_q(writer, split.compressed);
  decompress(writer, split.compressed, hook);
  if (phase.error_feedback) writer.move(hook.last, 3 * elements, "keep error");
  return hook;
}

BucketHook batched_power_sgd(const HookWriter& writer, const HookOptions& options,
                             const PowerSgdPhase& phase) {
  const LowRank square = power_sgd_square(writer.bucket.elements, options.power_sgd);
  BucketHook hook;
  hook.before.resize(2);
  if (square.elements() > writer.bucket.elements) {
    writer.move(hook.before[0], 2 * writer.bucket.elements, "grow to a square");
    writer.move(hook.before[0], square.elements() - writer.bucket.elements, "pad with zeros");
  }
  if (phase.error_feedback) writer.feed_error_back(hook.before[0], square.elements(), phase.first);
  std::ranges::copy(compute_p(writer, {square}, phase.random_q),
                    std::back_inserter(hook.before[0]));
  hook.before[1] = compute_q(writer, {square});
  decompress(writer, {square}, hook);
  // Here the error is kept before the host waits.
  if (phase.error_feedback) writer.move(hook.after, 3 * square.elements(), "keep error");
  return hook;
}

BucketHook optimizer_hook(const HookWriter& writer, const HookOptions& options) {
  BucketHook hook;
  hook.before.resize(1);
  writer.move(hook.after, 2 * writer.bucket.elements, "divide bucket");
  for (const std::vector<std::int64_t>& shape : writer.bucket.shapes) {
    std::int64_t traffic = options.optimizer_bytes;
    for (const std::int64_t side : shape) traffic *= side;
    if (traffic > 0)
      hook.after.push_back(
          named(writer.kernels.move(sim::bytes(traffic)), writer.trace.name("optimizer")));
  }
  return hook;
}

BucketHook cast_hook(const HookWriter& writer, bool casts) {
  const std::int64_t elements = writer.bucket.elements;
  const std::int64_t size = elements * writer.bucket.element_size;
  const std::int64_t sent = casts ? elements * kHalf : size;
  BucketHook hook;
  hook.before.resize(1);
  // The cast reads and writes once, the division the half size once more.
  hook.before[0].push_back(named(writer.kernels.move(sim::bytes(size + sent * 3)),
                                 writer.trace.name("compress bucket")));
  hook.after.push_back(
      named(writer.kernels.move(sim::bytes(size + sent)), writer.trace.name("decompress bucket")));
  return hook;
}

}  // namespace

std::vector<DdpCall> DdpCalls::all() const {
  std::vector<DdpCall> out;
  for (const auto* list :
       {&rebuild, &buffers, &unused, &norm_forward, &norm_backward, &join, &final_model})
    out.insert(out.end(), list->begin(), list->end());
  for (const std::vector<DdpCall>& bucket : buckets)
    out.insert(out.end(), bucket.begin(), bucket.end());
  return out;
}

std::vector<DdpCall> hook_calls(const HookBucket& bucket, const HookOptions& options,
                                std::int64_t iteration) {
  const auto call = [](std::int64_t elements, std::int64_t size) {
    return DdpCall{sim::Collective::all_reduce, sim::bytes(elements * size), size};
  };
  const std::int64_t size = bucket.element_size;
  if (compresses_elements(bucket, options)) return {call(bucket.elements, kHalf)};
  if (!compresses_now(options, iteration)) return {call(bucket.elements, size)};
  if (options.kind == CommHook::batched_power_sgd) {
    const LowRank square = power_sgd_square(bucket.elements, options.power_sgd);
    return {call(square.p(), size), call(square.q(), size)};
  }
  const PowerSgdBucket split = power_sgd_bucket(bucket.shapes, options.power_sgd);
  return {call(split.uncompressed_elements(), size), call(split.p_elements(), size),
          call(split.q_elements(), size)};
}

BucketHook bucket_hook(const HookBucket& bucket, const HookOptions& options, std::int64_t iteration,
                       const KernelModel& kernels, sim::Trace& trace) {
  const HookWriter writer{bucket, kernels, trace};
  BucketHook hook;
  if (options.optimizer_in_backward) return optimizer_hook(writer, options);
  if (options.kind == CommHook::none) {
    hook.before.resize(1);
    return hook;
  }
  if (!is_power_sgd(options)) return cast_hook(writer, compresses_elements(bucket, options));
  if (!compresses_now(options, iteration)) {
    hook.before.resize(1);
    writer.move(hook.before[0], 2 * bucket.elements, "divide bucket");
    return hook;
  }
  const bool first = iteration == options.power_sgd.start_iter + 1;
  const PowerSgdPhase phase{options.power_sgd.use_error_feedback, first,
                            first || !options.power_sgd.warm_start};
  return options.kind == CommHook::power_sgd ? power_sgd(writer, options, phase)
                                             : batched_power_sgd(writer, options, phase);
}

}  // namespace railyard::models
