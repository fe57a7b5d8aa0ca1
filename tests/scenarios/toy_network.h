// A network of four matrices, small enough to count by hand, for tests of training schemes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/nn/network.h"
#include "scenarios/run.h"

namespace railyard::tests {

// Elements of its parameters in registration order; gradients arrive the other way round.
inline const std::vector<std::int64_t> kToyElements{1024 * 512, 2048 * 1024, 4096 * 1024, 8 * 1024};
// Buffers, in fp32 and int64 elements.
inline constexpr std::int64_t kToyBuffers = 640;
inline constexpr std::int64_t kToyCounters = 16;

std::int64_t toy_elements();  // their sum

// `model:` of a training block, indented by two.
std::string toy_model();
// A scenario of `ranks` GPUs of an HGX H100, ring and Simple, with `block` under `key`.
std::string toy_job(const std::string& key, const std::string& block, std::int64_t ranks);

// A network of so many parameters of these sizes, a layer each.
models::NeuralNetwork network_with(const std::vector<std::int64_t>& sizes);

// With every message kept and every rank traced, nothing replayed.
scenarios::RunResult traced_run(const std::string& text, std::vector<std::string> sets = {});
// Bytes of all its messages.
std::int64_t bytes_moved(const scenarios::RunResult& result);
// Bytes of the iteration that `key.iterations` = n has and n - 1 has not.
std::int64_t bytes_of_iteration(const std::string& text, const std::string& key, std::int64_t n,
                                const std::vector<std::string>& sets = {});
// Names of the spans of a stream of a rank, by start.
std::vector<std::string> names_on(const scenarios::RunResult& result, std::uint32_t rank,
                                  const std::string& stream);

}  // namespace railyard::tests
