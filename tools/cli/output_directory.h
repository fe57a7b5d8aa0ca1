// A directory for results. Whatever is in it stays unless it is ours:
//
//   - it is made if it does not exist (with its parents);
//   - it is ours if its marker file starts with the marker text; then the files of the known names
//     are replaced, and those that the new result has no use for are removed;
//   - otherwise a file of one of the known names is somebody else's, and the directory is refused.
//
// New files are complete under temporary names before the first old one is replaced by rename().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"

namespace railyard::cli {

struct OutputFile {
  std::string name;
  std::string text;
};

struct OutputKind {
  std::string_view marker_file;  // written first, so that the directory is ours from then on
  std::string_view marker_text;
  std::vector<std::string_view> names;  // every file that may be written, the marker's included
};

class OutputDirectory {
 public:
  // Checks the directory and makes it; changes nothing in it.
  static sim::Result<OutputDirectory> open(const std::string& path, const OutputKind& kind);

  sim::Result<void> write(const std::vector<OutputFile>& files) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  OutputDirectory(std::string path, OutputKind kind)
      : path_(std::move(path)), kind_(std::move(kind)) {}

  std::string path_;
  OutputKind kind_;
};

}  // namespace railyard::cli
