// Symbolic values of the data-flow checker: what a byte is the sum of.
//
// A *term set* says which ranks' input bytes were summed, how often, and how far apart they lay in
// the inputs: terms (rank, offset, count) sorted by rank and offset, the first term at offset 0.
// Sets are interned, so that equal sums have equal ids. A *value* is a sequence of pieces; position
// p of a piece holds set `set` with its first term taken from input offset p + delta.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace railyard::sim {

struct Term {
  std::uint32_t rank = 0;
  std::int64_t offset = 0;  // relative to the first term
  std::uint32_t count = 1;
  friend auto operator<=>(const Term&, const Term&) = default;
};

// A sum and where its first term lies, relative to the position of the value.
struct Sum {
  std::uint32_t set = 0;
  std::int64_t delta = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};

class TermSets {
 public:
  // The sum of these terms (offsets absolute, unsorted), for a value at position 0.
  Sum intern(std::vector<Term> terms);
  Sum add(Sum a, Sum b);
  // The terms with offsets relative to position 0 of the value.
  [[nodiscard]] std::vector<Term> terms(Sum sum) const;

 private:
  struct Key {
    std::uint32_t a, b;
    std::int64_t shift;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  std::vector<std::vector<Term>> sets_;
  std::map<std::vector<Term>, std::uint32_t> ids_;
  std::unordered_map<Key, Sum, KeyHash> sums_;  // a at 0 plus b at `shift`
};

struct ValuePiece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Sum sum;
};
using Value = std::vector<ValuePiece>;  // positions 0..size, without gaps

// Position by position; both of the same size.
Value add(TermSets& sets, const Value& a, const Value& b);

// How `actual` differs from `expected`, both as terms at one position: "missing contribution of
// rank 2, has rank 1 twice". Empty if equal.
std::string describe_difference(const std::vector<Term>& actual, const std::vector<Term>& expected);

}  // namespace railyard::sim
