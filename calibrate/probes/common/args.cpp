#include "calibrate/probes/common/args.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end = text.find(separator); end != std::string::npos;
       end = text.find(separator, start)) {
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

std::int64_t parse_integer(const std::string& text, const std::string& what) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty())
    throw UsageError("'" + text + "' is not " + what);
  return value;
}

int shift_of(char suffix) {
  switch (suffix) {
    case 'k':
    case 'K': return 10;
    case 'm':
    case 'M': return 20;
    case 'g':
    case 'G': return 30;
    default: return 0;
  }
}

std::string join(const Sizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : ",") + size_text(size);
  return text;
}

std::string with_default(const std::string& help, const std::string& value) {
  return value.empty() ? help : help + " [" + value + "]";
}

}  // namespace

std::int64_t parse_size(const std::string& text) {
  const int shift = text.empty() ? 0 : shift_of(text.back());
  const std::string digits = shift > 0 ? text.substr(0, text.size() - 1) : text;
  const std::int64_t value = parse_integer(digits, "a size such as 4096, 64K or 1M");
  if (value < 0 || value > (std::numeric_limits<std::int64_t>::max() >> shift))
    throw UsageError("the size '" + text + "' is out of range");
  return value << shift;
}

Sizes parse_sizes(const std::string& text) {
  Sizes sizes;
  const std::vector<std::string> range = split(text, ':');
  if (range.size() == 1) {
    for (const std::string& part : split(text, ',')) sizes.push_back(parse_size(part));
    return sizes;
  }
  if (range.size() > 3) throw UsageError("'" + text + "' is not first:last:factor");
  const std::int64_t first = parse_size(range[0]), last = parse_size(range[1]);
  const std::int64_t factor = range.size() == 3 ? parse_integer(range[2], "a factor") : 2;
  if (first < 1 || last < first || factor < 2)
    throw UsageError("'" + text + "' needs 1 <= first <= last and a factor of 2 or more");
  for (std::int64_t size = first; size <= last; size *= factor) {
    sizes.push_back(size);
    if (size > std::numeric_limits<std::int64_t>::max() / factor) break;
  }
  return sizes;
}

std::string size_text(std::int64_t bytes) {
  for (const auto& [shift, suffix] : {std::pair(30, "G"), std::pair(20, "M"), std::pair(10, "K")}) {
    if (bytes > 0 && bytes % (std::int64_t{1} << shift) == 0)
      return std::to_string(bytes >> shift) + suffix;
  }
  return std::to_string(bytes);
}

Args::Args(std::string tool, std::string purpose)
    : tool_(std::move(tool)), purpose_(std::move(purpose)) {}

void Args::add(const std::string& name, const std::string& meta, const std::string& help,
               std::function<void(const std::string&)> set) {
  options_.push_back({name, meta, help, std::move(set), !meta.empty()});
}

void Args::flag(const std::string& name, const std::string& help, bool* target) {
  add(name, "", help, [target](const std::string&) { *target = true; });
}

void Args::text(const std::string& name, const std::string& help, std::string* target) {
  add(name, "TEXT", with_default(help, *target),
      [target](const std::string& value) { *target = value; });
}

void Args::number(const std::string& name, const std::string& help, std::int64_t* target) {
  add(name, "N", with_default(help, std::to_string(*target)),
      [target](const std::string& value) { *target = parse_integer(value, "a whole number"); });
}

void Args::seconds(const std::string& name, const std::string& help, double* target) {
  char shown[32];
  std::snprintf(shown, sizeof shown, "%g", *target);
  add(name, "S", with_default(help, shown), [target](const std::string& value) {
    char* end = nullptr;
    const double parsed = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !std::isfinite(parsed) || parsed <= 0)
      throw UsageError("'" + value + "' is not a positive number of seconds");
    *target = parsed;
  });
}

void Args::sizes(const std::string& name, const std::string& help, Sizes* target) {
  add(name, "LIST", with_default(help, join(*target)),
      [target](const std::string& value) { *target = parse_sizes(value); });
}

void Args::words(const std::string& name, const std::string& help,
                 std::vector<std::string>* target) {
  std::string shown;
  for (const std::string& word : *target) shown += (shown.empty() ? "" : ",") + word;
  add(name, "LIST", with_default(help, shown),
      [target](const std::string& value) { *target = split(value, ','); });
}

const Args::Option& Args::find(const std::string& name) const {
  for (const Option& option : options_)
    if (option.name == name) return option;
  throw UsageError("unknown argument '" + name + "'");
}

bool Args::parse(int argc, char** argv) const {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      print_help();
      return false;
    }
    const Option& option = find(name);
    if (option.takes_value && i + 1 >= argc) throw UsageError(name + " needs a value");
    try {
      option.set(option.takes_value ? argv[++i] : "");
    } catch (const UsageError& error) {
      throw UsageError(name + ": " + error.what());
    }
  }
  return true;
}

void Args::print_help() const {
  std::printf("%s: %s\n\n", tool_.c_str(), purpose_.c_str());
  for (const Option& option : options_) {
    const std::string left = option.name + (option.takes_value ? " " + option.meta : "");
    std::printf("  %-22s %s\n", left.c_str(), option.help.c_str());
  }
}

}  // namespace railyard::probe
