#include "calibrate/readers/nccl_log.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "calibrate/readers/nccl_log_builder.h"

namespace railyard::calibrate::nccl_log {
namespace {

constexpr std::size_t kMaxLine = std::size_t{1} << 20U;  // a longer one is no log line
constexpr std::size_t kBlock = std::size_t{1} << 20U;

// Cuts a stream of bytes into lines; of an overlong line the first kMaxLine bytes are used.
class LineFeeder {
 public:
  explicit LineFeeder(Builder& builder) : builder_(builder) {}

  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      take(bytes.substr(0, end));
      if (end == std::string_view::npos) return;
      emit(true);
      bytes.remove_prefix(end + 1);
    }
  }

  void finish() {
    if (!pending_.empty()) emit(false);
  }

 private:
  void take(std::string_view part) {
    const std::size_t room = kMaxLine - pending_.size();
    if (part.size() > room && !overlong_) {
      overlong_ = true;
      builder_.overlong_line();
    }
    pending_.append(part.substr(0, room));
  }

  void emit(bool complete) {
    builder_.line(pending_, complete && !overlong_);
    pending_.clear();
    overlong_ = false;
  }

  Builder& builder_;
  std::string pending_;
  bool overlong_ = false;
};

}  // namespace

sim::Result<Log> read_text(std::string_view text, const std::string& source,
                           const Options& options) {
  Builder builder(source, options);
  LineFeeder feeder(builder);
  feeder.feed(text);
  feeder.finish();
  return builder.finish();
}

sim::Result<Log> read_file(const std::string& path, const Options& options) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return sim::Error{sim::ErrorCode::io, std::string("cannot read: ") + std::strerror(errno),
                      path};
  Builder builder(path, options);
  LineFeeder feeder(builder);
  std::string block(kBlock, '\0');
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    feeder.feed(std::string_view(block).substr(0, static_cast<std::size_t>(file.gcount())));
  }
  if (file.bad())
    return sim::Error{sim::ErrorCode::io, std::string("cannot read: ") + std::strerror(errno),
                      path};
  feeder.finish();
  return builder.finish();
}

}  // namespace railyard::calibrate::nccl_log
