#include "tools/cli/help_formatter.h"

#include "tools/cli/summary.h"
#include "tools/cli/table.h"

namespace railyard::cli {
namespace {

constexpr std::size_t kColumn = 28;

}  // namespace

HelpFormatter::HelpFormatter() { column_width(kColumn); }

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool positional) const {
  return option->get_name(positional, !positional);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string type = option->get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  return option->get_positional() || name.empty() ? "" : " " + name;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrap(option->get_description(), kWidth - kColumn, "");
}

}  // namespace railyard::cli
