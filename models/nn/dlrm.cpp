// DLRM as in MLPerf training: 26 sparse tables of width 128 (rows capped at 40 M), one look-up
// each.
#include <array>

#include <fmt/format.h>

#include "models/nn/builder.h"
#include "models/nn/families.h"

namespace railyard::models {
namespace {

constexpr std::int64_t kWidth = 128;
constexpr std::array<std::int64_t, 26> kTableRows{
    39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
    38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
    14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36};
constexpr std::array<std::int64_t, 4> kBottom{13, 512, 256, 128};
constexpr std::array<std::int64_t, 6> kTop{479, 1024, 1024, 512, 256, 1};

template <std::size_t N>
void register_mlp(NetworkBuilder& net, const char* name, const std::array<std::int64_t, N>& sizes) {
  for (std::size_t i = 0; i + 1 < N; ++i)
    net.linear(fmt::format("{}.{}", name, 2 * i), sizes[i], sizes[i + 1]);
}

template <std::size_t N>
void run_mlp(NetworkBuilder& net, const char* name, const std::array<std::int64_t, N>& sizes) {
  for (std::size_t i = 0; i + 1 < N; ++i) {
    net.run_linear(fmt::format("{}.{}", name, 2 * i), 1);
    net.run_elementwise(fmt::format("{}.{}", name, 2 * i + 1), sizes[i + 1], sizes[i + 1]);
  }
}

}  // namespace

NetworkSpec build_dlrm(const BuildContext& context) {
  NetworkBuilder net(context.name, context.dtype);
  for (std::size_t i = 0; i < kTableRows.size(); ++i)
    net.embedding(fmt::format("emb_l.{}", i), kTableRows[i], kWidth, true);
  register_mlp(net, "bot_l", kBottom);
  register_mlp(net, "top_l", kTop);

  run_mlp(net, "bot_l", kBottom);
  for (std::size_t i = 0; i < kTableRows.size(); ++i)
    net.run_embedding(fmt::format("emb_l.{}", i), 1);
  // Pairwise products of the 26 look-ups and the bottom output; both operands are activations.
  constexpr std::int64_t kVectors = static_cast<std::int64_t>(kTableRows.size()) + 1;
  const Flops products = sim::flops(2 * kVectors * kVectors * kWidth);
  net.run({.name = "interact",
           .kind = LayerKind::gemm,
           .parameters = {},
           .work = {.forward_flops = products,
                    .dgrad_flops = 2 * products,
                    .forward_elements = kVectors * kWidth + kVectors * kVectors,
                    .dgrad_elements = 2 * kVectors * kWidth + kVectors * kVectors}});
  run_mlp(net, "top_l", kTop);
  net.run_elementwise("loss", 1, 1);
  return std::move(net).spec();
}

}  // namespace railyard::models
