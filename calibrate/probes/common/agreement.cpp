#include "calibrate/probes/common/agreement.h"

#include <algorithm>
#include <sstream>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {

std::int64_t number_of_first(Store& store, const std::string& name, std::int64_t mine) {
  if (store.rank() == 0) store.set("number/" + name, std::to_string(mine));
  std::istringstream text(store.get("number/" + name));
  std::int64_t number = 0;
  if (!(text >> number)) throw ProbeError("rank 0 sent no number for " + name);
  return number;
}

std::vector<double> slowest(Store& store, const std::string& name,
                            const std::vector<double>& samples) {
  std::ostringstream mine;
  mine.precision(17);
  for (const double time : samples) mine << time << ' ';
  std::vector<double> largest = samples;
  for (const std::string& text : store.all_gather("samples/" + name, mine.str())) {
    std::istringstream stream(text);
    for (double& value : largest) {
      double time = 0;
      if (!(stream >> time)) throw ProbeError("a rank sent too few samples of " + name);
      value = std::max(value, time);
    }
  }
  return largest;
}

}  // namespace railyard::probe
