#include "tools/cli/output_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace railyard::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".railyard-tmp-";

sim::Error io_error(const std::string& path, std::string_view what, std::string_view why) {
  return {sim::ErrorCode::io, fmt::format("{}: {}", what, why), path};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

bool starts_with(const fs::path& path, std::string_view text) {
  const File file(std::fopen(path.c_str(), "rb"));
  std::string start(text.size(), '\0');
  return file != nullptr && std::fread(start.data(), 1, start.size(), file.get()) == start.size() &&
         start == text;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// The file's bytes are on the disk before it gets its name.
sim::Result<void> write_whole(const std::string& path, std::string_view text) {
  File file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return io_error(path, "cannot write", std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0 && fsync(fileno(file.get())) == 0;
  if (!written) return io_error(path, "cannot write", std::strerror(errno));
  return {};
}

// Removes what it is told of, unless everything went well.
class Cleanup {
 public:
  Cleanup() = default;
  ~Cleanup() {
    std::error_code ignored;
    for (const fs::path& path : paths_) fs::remove(path, ignored);
  }
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;
  void add(fs::path path) { paths_.push_back(std::move(path)); }
  void dismiss() { paths_.clear(); }

 private:
  std::vector<fs::path> paths_;
};

}  // namespace

sim::Result<OutputDirectory> OutputDirectory::open(const std::string& path,
                                                   const OutputKind& kind) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return io_error(path, "cannot make the directory", failed.message());
  if (!fs::is_directory(path, failed))
    return io_error(path, "cannot write results", "it is not a directory");
  if (access(path.c_str(), W_OK | X_OK) != 0)
    return io_error(path, "cannot write results", std::strerror(errno));
  const fs::path directory(path);
  if (!starts_with(directory / kind.marker_file, kind.marker_text))
    for (const std::string_view name : kind.names)
      if (is_there(directory / name))
        return io_error(path, "refused",
                        fmt::format("it holds a {} that railyard did not write; choose another "
                                    "directory, or move the file away",
                                    name));
  return OutputDirectory(path, kind);
}

sim::Result<void> OutputDirectory::write(const std::vector<OutputFile>& files) const {
  const fs::path directory(path_);
  Cleanup temporaries;
  for (const OutputFile& file : files) {
    const fs::path temporary = directory / (std::string(kTemporary) + file.name);
    temporaries.add(temporary);
    RAILYARD_TRY(write_whole(temporary.string(), file.text));
  }
  std::error_code failed;
  for (const bool marker : {true, false})
    for (const OutputFile& file : files) {
      if ((file.name == kind_.marker_file) != marker) continue;
      fs::rename(directory / (std::string(kTemporary) + file.name), directory / file.name, failed);
      if (failed)
        return io_error((directory / file.name).string(), "cannot write", failed.message());
    }
  temporaries.dismiss();
  for (const std::string_view name : kind_.names) {
    const bool fresh = std::any_of(files.begin(), files.end(),
                                   [&](const OutputFile& file) { return file.name == name; });
    if (!fresh) fs::remove(directory / name, failed);
  }
  return {};
}

}  // namespace railyard::cli
