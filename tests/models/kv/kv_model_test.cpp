// Sizes against the published table (formulas written here), and who talks to whom.
#include "models/kv/kv_model.h"

#include <doctest/doctest.h>

#include <array>
#include <map>

namespace railyard::models {
namespace {

KvModel heads(std::int64_t kv_heads) {
  KvModel model;
  model.layers = 1;
  model.heads = model.kv_heads = kv_heads;
  model.head_dim = 128;
  return model;
}

TEST_CASE("kv model: bytes per token of the published models") {
  struct Row {
    const char* model;
    std::int64_t layers, heads, dim;
    std::int64_t bytes;  // as published
  };
  constexpr std::array rows{
      Row{"llama2-7b", 32, 32, 128, 524'288},   Row{"llama2-70b", 80, 8, 128, 327'680},
      Row{"llama3-8b", 32, 8, 128, 131'072},    Row{"llama3-70b", 80, 8, 128, 327'680},
      Row{"llama3-405b", 126, 8, 128, 516'096}, Row{"mixtral-8x7b", 32, 8, 128, 131'072},
      Row{"qwen3-8b", 36, 8, 128, 147'456},     Row{"qwen3-235b", 94, 4, 128, 192'512}};
  for (const Row& row : rows) {
    CAPTURE(row.model);
    const KvModel model = kv_model(row.model).value();
    CHECK(kv_bytes_per_token(model, 1, 2).raw() == row.bytes);
    CHECK(row.bytes == 2 * row.layers * row.heads * row.dim * 2);
    CHECK(kv_bytes_per_token(model, 1, 1).raw() == row.bytes / 2);  // fp8
    for (std::int64_t tp = 1; tp <= row.heads; tp *= 2)
      CHECK(kv_bytes_per_token(model, tp, 2).raw() * tp == row.bytes);
    CHECK(kv_regions(model) == 2 * row.layers);
  }
}

TEST_CASE("kv model: fewer heads than ranks are replicated") {
  // Qwen3-235B: 4 heads; under 8 ranks every head is there twice, and twice the cache moves.
  const KvModel model = kv_model("qwen3-235b").value();
  CHECK(kv_bytes_per_token(model, 8, 2).raw() * 8 == 2 * 192'512);
  std::int64_t moved = 0;
  for (const KvPiece& piece : kv_pieces(model, 8, 8, 2))
    moved += piece.per_token.raw() * kv_regions(model);
  CHECK(moved == 2 * 192'512);
}

TEST_CASE("kv model: a latent cache is whole on every rank") {
  const KvModel model = kv_model("deepseek-v3").value();  // 61 layers x (512 + 64)
  CHECK(kv_bytes_per_token(model, 1, 2).raw() == 70'272);
  CHECK(kv_bytes_per_token(model, 8, 2).raw() == 70'272);
  CHECK(kv_regions(model) == 61);
  const std::vector<KvPiece> pieces = kv_pieces(model, 2, 4, 2);
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[3] == KvPiece{1, 3, sim::bytes(1152), true});
}

// Every head of the receiver comes from a sender that holds it, and all heads come.
void check_pieces(const KvModel& model, std::int64_t from_tp, std::int64_t to_tp) {
  CAPTURE(from_tp);
  CAPTURE(to_tp);
  const std::int64_t head = model.head_dim * 2;
  const std::int64_t sent_heads = std::max<std::int64_t>(1, model.kv_heads / from_tp);
  const std::int64_t held = std::max<std::int64_t>(1, model.kv_heads / to_tp);
  std::map<std::uint32_t, std::int64_t> received;
  std::map<std::uint32_t, std::int64_t> sent;
  for (const KvPiece& piece : kv_pieces(model, from_tp, to_tp, 2)) {
    received[piece.to] += piece.per_token.raw() / head;
    sent[piece.from] += piece.per_token.raw() / head;
    CHECK(piece.from < from_tp);
    CHECK(piece.per_token.raw() / head <= sent_heads);
    CHECK(piece.whole == (sent_heads == held));
  }
  CHECK(received.size() == static_cast<std::size_t>(to_tp));
  for (const auto& each : received) CHECK(each.second == held);
  // Without copies on the sending side all senders send equally much.
  if (from_tp <= model.kv_heads)
    for (const auto& each : sent) CHECK(each.second * from_tp == held * to_tp);
}

TEST_CASE("kv model: pieces between instances of all sizes") {
  for (const std::int64_t from : {1, 2, 4, 8, 16, 32})
    for (const std::int64_t to : {1, 2, 4, 8, 16, 32}) check_pieces(heads(8), from, to);
}

TEST_CASE("kv model: equal instances talk rank to rank, halves go to two") {
  for (const std::int64_t tp : {1, 2, 8, 16}) {
    const std::vector<KvPiece> same = kv_pieces(heads(8), tp, tp, 2);
    REQUIRE(same.size() == static_cast<std::size_t>(tp));
    for (const KvPiece& piece : same) CHECK(piece.from == piece.to);
  }
  // Two heads a rank split over two ranks with one head each, and the other way round.
  const std::vector<KvPiece> split = kv_pieces(heads(8), 4, 8, 2);
  REQUIRE(split.size() == 8);
  CHECK(split[5] == KvPiece{2, 5, sim::bytes(256), false});
  const std::vector<KvPiece> joined = kv_pieces(heads(8), 8, 4, 2);
  REQUIRE(joined.size() == 8);
  CHECK(joined[5] == KvPiece{5, 2, sim::bytes(256), false});
}

TEST_CASE("kv model: work of a token") {
  const KvModel model = kv_model("llama3-8b").value();
  // One token: two operations per parameter, and attention to itself (4 x layers x width x 1 / 2).
  CHECK(prefill_flops(model, 1) == 2.0 * 8'030'261'248 + 2.0 * 32 * 4096);
  CHECK(decode_flops(model, 3, 1000) == 6.0 * 8'030'261'248 + 4.0 * 32 * 4096 * 1000);
  CHECK(touched_parameters(model, 1) == 8'030'261'248.0);
  // Two of eight experts: one token touches the active ones, very many touch all.
  const KvModel mixture = kv_model("mixtral-8x7b").value();
  CHECK(touched_parameters(mixture, 1) == doctest::Approx(12'879'925'248.0));
  CHECK(touched_parameters(mixture, 1000) == doctest::Approx(46'702'792'704.0));
}

TEST_CASE("kv model: what cannot be") {
  CHECK(check_tensor_parallel(heads(8), 8).ok());
  KvModel model = kv_model("llama3-8b").value();
  CHECK(check_tensor_parallel(model, 16).ok());  // 32 query heads, 8 KV heads twice
  CHECK(check_tensor_parallel(model, 5).error().message ==
        "32 query heads do not divide over 5 ranks");
  model.kv_heads = 6;
  CHECK(check_tensor_parallel(model, 4).error().message ==
        "6 KV heads can neither be divided over 4 ranks nor replicated evenly");
  CHECK(kv_model("llama3-8").error().message.starts_with("no model 'llama3-8' is known"));
}

}  // namespace
}  // namespace railyard::models
