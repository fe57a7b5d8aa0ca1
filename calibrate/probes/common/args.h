// Command-line arguments of a probe: "--name" (a flag) or "--name VALUE".
//
// Sizes are bytes with an optional K, M or G (powers of 1024). A list is "4K,64K,1M" or a range
// "8:128M:4", the first size, the last, and the factor between neighbours (2 where left out).
//
//   Args args("probe_tcp", "TCP throughput and latency");
//   args.flag("--loopback", "both ends in this process", &loopback);
//   args.sizes("--sizes", "message sizes", &sizes);
//   if (!args.parse(argc, argv)) return;   // --help was asked for and printed
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace railyard::probe {

using Sizes = std::vector<std::int64_t>;

std::int64_t parse_size(const std::string& text);  // throws UsageError
Sizes parse_sizes(const std::string& text);
std::string size_text(std::int64_t bytes);  // 65536 -> "64K"; 1000 -> "1000"

class Args {
 public:
  Args(std::string tool, std::string purpose);

  // What a target holds when parse() is called is its default, and is shown in the help.
  void flag(const std::string& name, const std::string& help, bool* target);
  void text(const std::string& name, const std::string& help, std::string* target);
  void number(const std::string& name, const std::string& help, std::int64_t* target);
  void seconds(const std::string& name, const std::string& help, double* target);
  void sizes(const std::string& name, const std::string& help, Sizes* target);
  void words(const std::string& name, const std::string& help, std::vector<std::string>* target);

  // False when --help was given (and printed). Throws UsageError on anything not understood.
  [[nodiscard]] bool parse(int argc, char** argv) const;

 private:
  struct Option {
    std::string name, meta, help;
    std::function<void(const std::string&)> set;
    bool takes_value;
  };
  void add(const std::string& name, const std::string& meta, const std::string& help,
           std::function<void(const std::string&)> set);
  [[nodiscard]] const Option& find(const std::string& name) const;
  void print_help() const;

  std::string tool_, purpose_;
  std::vector<Option> options_;
};

}  // namespace railyard::probe
