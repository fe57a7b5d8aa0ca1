// What the fuzzers of measurement logs demand of every reader.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/measurement.h"

namespace fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

inline int check_error(const std::string& text) {
  require(!text.empty() && text.find('\n') == std::string::npos);
  return 0;
}

inline void check_notes(const std::vector<railyard::calibrate::Note>& notes) {
  require(notes.size() <= 201);
  for (const auto& note : notes) require(note.text.find('\n') == std::string::npos);
}

// measurement.h: a time or a rate, finite and above 0; never a size of 0.
inline void check_measurements(const std::vector<railyard::calibrate::Measurement>& all) {
  for (const auto& m : all) {
    require(m.us || m.gb_per_s);
    require(!m.us || (std::isfinite(*m.us) && *m.us > 0));
    require(!m.gb_per_s || (std::isfinite(*m.gb_per_s) && *m.gb_per_s > 0));
    require(!m.bytes || *m.bytes > 0);
  }
}

}  // namespace fuzz
