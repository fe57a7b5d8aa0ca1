#include "sim/trace.h"

namespace railyard::sim {
namespace {

// FNV-1a: std::hash differs between standard libraries, and the trace hash must not.
std::uint64_t text_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::uint64_t ticks(Time time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

}  // namespace

std::uint32_t Trace::name(std::string_view text) {
  const auto [it, added] =
      index_.try_emplace(std::string(text), static_cast<std::uint32_t>(names_.size()));
  if (added) {
    names_.emplace_back(text);
    name_hash_.push_back(text_hash(text));
  }
  return it->second;
}

void Trace::add(const Span& span) {
  RAILYARD_CHECK(span.name < names_.size(), "a span needs a name from Trace::name()");
  const std::uint64_t who = std::uint64_t{span.rank} << 32 | std::uint64_t{span.stream} << 8 |
                            static_cast<std::uint64_t>(span.kind);
  hash_ += mix_hash(name_hash_[span.name] ^
                    mix_hash(who ^ mix_hash(ticks(span.start) ^ mix_hash(ticks(span.end)))));
  if (span.rank < ranks_kept_) spans_.push_back(span);
}

}  // namespace railyard::sim
