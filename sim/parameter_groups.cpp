#include "sim/parameter_groups.h"

#include <cmath>
#include <vector>

#include "sim/text.h"

namespace railyard::sim {
namespace {

double number_of(int value) { return value; }
double number_of(double value) { return value; }
double number_of(FlopsRate value) { return value.per_second; }
double number_of(Bytes value) { return static_cast<double>(value.raw()); }
double number_of(Bandwidth value) { return to_gigabytes_per_second(value) * 1e9; }
double number_of(Duration value) { return to_seconds(value); }

void assign(int& to, double value) { to = static_cast<int>(std::lround(value)); }
void assign(double& to, double value) { to = value; }
void assign(FlopsRate& to, double value) { to.per_second = value; }
void assign(Bytes& to, double value) { to = bytes(std::llround(value)); }
void assign(Bandwidth& to, double value) { to = bytes_per_second(std::llround(value)); }
void assign(Duration& to, double value) { to = Duration(std::llround(value * 1e12)); }

// Calls use(member) for the parameter; an error where there is none.
template <typename AnyParameters, typename Use>
Result<void> with_parameter(AnyParameters& parameters, std::string_view path, Use&& use) {
  bool found = false;
  std::vector<std::string> names;
  for_each_group(parameters, [&](const std::string& prefix, auto& group) {
    for_each_field<std::decay_t<decltype(group)>>([&](const auto& field) {
      names.push_back(prefix + "." + std::string(field.name));
      if (names.back() != path) return;
      found = true;
      use(group.*field.member);
    });
  });
  if (found) return {};
  const std::vector<std::string_view> known(names.begin(), names.end());
  return bad_input("no parameter '" + std::string(path) + "'" + did_you_mean(path, known));
}

}  // namespace

Result<double> parameter_value(const Parameters& parameters, std::string_view path) {
  double value = 0;
  RAILYARD_TRY(
      with_parameter(parameters, path, [&](const auto& field) { value = number_of(field); }));
  return value;
}

Result<void> set_parameter(Parameters& parameters, std::string_view path, double value) {
  return with_parameter(parameters, path, [&](auto& field) { assign(field, value); });
}

}  // namespace railyard::sim
