#include "tools/cli/validation_report.h"
namespace railyard::cli {
std::string validation_html(const std::vector<Prediction>&) { return {}; }
}  // namespace railyard::cli
