#include "sim/contributions.h"

#include <fmt/format.h>

#include <algorithm>

namespace railyard::sim {
namespace {

std::string times(std::uint32_t count) {
  return count == 2 ? "twice" : fmt::format("{} times", count);
}

}  // namespace

std::size_t TermSets::KeyHash::operator()(const Key& key) const {
  const auto mix = [](std::uint64_t h, std::uint64_t v) {
    return (h ^ v) * 0x9e3779b97f4a7c15ULL + (h >> 29);
  };
  return mix(mix(mix(1, key.a), key.b), static_cast<std::uint64_t>(key.shift));
}

Sum TermSets::intern(std::vector<Term> terms) {
  std::ranges::sort(terms);
  std::vector<Term> merged;
  for (const Term& term : terms) {
    if (!merged.empty() && merged.back().rank == term.rank && merged.back().offset == term.offset)
      merged.back().count += term.count;
    else
      merged.push_back(term);
  }
  const std::int64_t delta = merged.empty() ? 0 : merged.front().offset;
  for (Term& term : merged) term.offset -= delta;
  const auto next = static_cast<std::uint32_t>(sets_.size());
  const auto [it, is_new] = ids_.try_emplace(std::move(merged), next);
  if (is_new) sets_.push_back(it->first);
  return {it->second, delta};
}

std::vector<Term> TermSets::terms(Sum sum) const {
  std::vector<Term> terms = sets_[sum.set];
  for (Term& term : terms) term.offset += sum.delta;
  return terms;
}

Sum TermSets::add(Sum a, Sum b) {
  const Key key{a.set, b.set, b.delta - a.delta};
  const auto known = sums_.find(key);
  if (known != sums_.end()) return {known->second.set, known->second.delta + a.delta};
  std::vector<Term> all = terms({a.set, 0});
  const std::vector<Term> other = terms({b.set, key.shift});
  all.insert(all.end(), other.begin(), other.end());
  const Sum sum = intern(std::move(all));
  sums_.emplace(key, sum);
  return {sum.set, sum.delta + a.delta};
}

Value add(TermSets& sets, const Value& a, const Value& b) {
  Value total;
  std::size_t i = 0;
  std::size_t j = 0;
  std::int64_t at = 0;
  while (i < a.size() && j < b.size()) {
    const std::int64_t end = std::min(a[i].end, b[j].end);
    total.push_back({at, end, sets.add(a[i].sum, b[j].sum)});
    at = end;
    if (a[i].end == end) ++i;
    if (b[j].end == end) ++j;
  }
  return total;
}

std::string describe_difference(const std::vector<Term>& actual,
                                const std::vector<Term>& expected) {
  std::vector<std::string> missing, extra;
  const auto same_place = [](const Term& a, const Term& b) {
    return a.rank == b.rank && a.offset == b.offset;
  };
  const auto find = [&](const std::vector<Term>& terms, const Term& what) {
    return std::ranges::find_if(terms, [&](const Term& t) { return same_place(t, what); });
  };
  for (const Term& term : expected) {
    const auto found = find(actual, term);
    if (found == actual.end() && std::ranges::find(actual, term.rank, &Term::rank) == actual.end())
      missing.push_back(fmt::format("missing contribution of rank {}", term.rank));
    else if (found != actual.end() && found->count > term.count)
      extra.push_back(fmt::format("has rank {} {}", term.rank, times(found->count)));
  }
  for (const Term& term : actual) {
    if (find(expected, term) != expected.end()) continue;
    const auto rank = std::ranges::find(expected, term.rank, &Term::rank);
    extra.push_back(rank == expected.end()
                        ? fmt::format("has rank {}, which does not belong", term.rank)
                        : fmt::format("has input offset {} of rank {} instead of {}", term.offset,
                                      term.rank, rank->offset));
  }
  missing.insert(missing.end(), extra.begin(), extra.end());
  return fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace railyard::sim
