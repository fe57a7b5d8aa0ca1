// The trace of a run: what ran when, on which stream of which rank, and one hash over all of it.
//
// The hash is a sum over records, so equal records give equal hashes in any order; two runs with
// the same hash agree on every start and end of every kernel and collective, and through the
// collectives' digests on every message. Spans are kept only for the ranks asked for; the hash
// covers all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/units.h"

namespace railyard::sim {

// A well-mixed 64-bit hash (splitmix64's finaliser).
constexpr std::uint64_t mix_hash(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

enum class SpanKind : std::uint8_t { kernel, collective, host };

struct Span {
  std::uint32_t rank = 0;
  std::uint32_t name = 0;  // index into Trace::names()
  std::uint16_t stream = 0;
  SpanKind kind = SpanKind::kernel;
  Time start{};
  Time end{};
};

class Trace {
 public:
  // Spans of ranks below `ranks_kept` are kept.
  explicit Trace(std::uint32_t ranks_kept) : ranks_kept_(ranks_kept) {}

  std::uint32_t name(std::string_view text);  // interned
  void add(const Span& span);
  void add_digest(std::uint64_t digest) { hash_ += mix_hash(digest); }

  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::uint32_t ranks_kept_;
  std::uint64_t hash_ = 0;
  std::vector<Span> spans_;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> name_hash_;  // so that the hash does not depend on interning order
  std::unordered_map<std::string, std::uint32_t> index_;
};

}  // namespace railyard::sim
