#include "topologies/import/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace railyard::topologies {

sim::Result<std::string> read_text_file(const std::string& path, std::size_t limit) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return sim::Error{sim::ErrorCode::io, "is a directory, not a file", path};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return sim::Error{sim::ErrorCode::io,
                      fmt::format("cannot be opened: {}", std::strerror(errno ? errno : EIO)),
                      path};
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > limit)
      return sim::bad_input(
          fmt::format("is larger than {} MiB, the most that is read", limit >> 20), path);
  }
  if (file.bad()) return sim::Error{sim::ErrorCode::io, "cannot be read", path};
  return text;
}

void ImportNotes::add(std::string note) {
  if (lines_.size() > kMaxNotes) return;
  if (std::find(lines_.begin(), lines_.end(), note) != lines_.end()) return;
  if (lines_.size() == kMaxNotes) note = "further notes are not shown";
  lines_.push_back(std::move(note));
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string result(text.substr(0, kLongest));
  for (char& c : result)
    if (c < ' ' || c > '~') c = '?';
  if (text.size() > kLongest) result += "...";
  return result;
}

}  // namespace railyard::topologies
