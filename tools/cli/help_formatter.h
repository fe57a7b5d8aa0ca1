// --help texts at most 100 columns wide, without the library's notes on how values are checked.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace railyard::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option_name(const CLI::Option* option, bool positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace railyard::cli
