#include "tools/cli/text_output.h"

#include <filesystem>
#include <fstream>

namespace railyard::cli {

sim::Result<void> write_text(const std::string& path, const std::string& text) {
  const std::string draft = path + ".part";
  std::error_code failed;
  {
    std::ofstream file(draft, std::ios::binary);
    file << text;
    file.close();
    if (!file) {
      std::filesystem::remove(draft, failed);
      return sim::Error{sim::ErrorCode::io, "cannot be written", path};
    }
  }
  std::filesystem::rename(draft, path, failed);
  if (!failed) return {};
  const std::string why = failed.message();
  std::filesystem::remove(draft, failed);
  return sim::Error{sim::ErrorCode::io, "cannot be written: " + why, path};
}

}  // namespace railyard::cli
