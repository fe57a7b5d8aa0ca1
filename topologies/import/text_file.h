// Foreign files as text: read whole, with a limit, and the notes that an importer leaves about what
// it read. An importer refuses what it cannot read (an Error with file:line) and notes what it read
// with a reservation (something ignored, assumed or unusual).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"

namespace railyard::topologies {

inline constexpr std::size_t kMaxImportBytes = std::size_t{16} << 20;

// The file's bytes; an error for a directory, an unreadable file, or one above `limit`.
sim::Result<std::string> read_text_file(const std::string& path,
                                        std::size_t limit = kMaxImportBytes);

// One note is one line, "file:line: text". Equal notes are kept once, and at most kMaxNotes.
class ImportNotes {
 public:
  static constexpr std::size_t kMaxNotes = 100;
  void add(std::string note);
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

// For messages: at most 40 bytes, what is not printable ASCII as '?'.
std::string printable(std::string_view text);

}  // namespace railyard::topologies
