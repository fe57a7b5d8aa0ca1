// A network small enough to write its timeline down, for the tests of sharded training: a root
// (embedding and head) and three blocks, with shapes that do not divide by four.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/run.h"

namespace railyard::tests {

struct TinyShape {
  std::int64_t rows;
  std::int64_t columns;
  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
};
// By unit: the root, then three equal blocks. The root's first is the embedding's, its second the
// head's.
extern const std::vector<std::vector<TinyShape>> kTinyUnits;

// `parameters:` and `layers:`, indented by four: embed, layers.0.mlp to layers.2.mlp, head.
std::string tiny_network();

// A scenario on H100s: `key` with the tiny network, two iterations, and `more` (keys indented by
// two).
std::string tiny_job(const std::string& key, const std::string& ranks,
                     const std::string& more = "");

// Bytes that one rank sends in the steady iteration, by collective.
std::map<sim::Collective, std::int64_t> sent_bytes(const scenarios::RunResult& result);
// Collectives in the steady iteration.
std::map<sim::Collective, std::int64_t> call_counts(const scenarios::RunResult& result);

// What rank 0 did on these streams between the last iteration but one's optimizer and the last's,
// as a text of the form of a golden one: the stream's name, then what it ran, in order, indented by
// two.
std::string streams_of(const scenarios::RunResult& result, const std::vector<std::string>& streams);
// The streams a golden text names.
std::vector<std::string> streams_in(std::string_view golden);
// A golden text without comments (# to the end of the line), blank lines and trailing blanks.
std::string without_comments(std::string_view golden);

}  // namespace railyard::tests
