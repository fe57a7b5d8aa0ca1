// Small text helpers that every error message needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railyard::sim {

bool equal_ignoring_case(std::string_view a, std::string_view b);

// The candidate nearest to `name` by edit distance (ignoring case), if near enough to be a slip of
// the finger (distance <= 2, or <= a third of the length); empty otherwise. O(|name| * total
// length).
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// "; did you mean 'x'?" or an empty string.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace railyard::sim
