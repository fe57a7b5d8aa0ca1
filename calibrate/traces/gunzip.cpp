#include "calibrate/traces/gunzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

namespace railyard::calibrate {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's largest window, and gzip's header expected
constexpr std::size_t kBlock = std::size_t{1} << 16;

// One inflate stream, ended whatever happens.
class Inflater {
 public:
  explicit Inflater(std::string_view packed) : packed_(packed) {
    ready_ = inflateInit2(&stream_, kGzipWindow) == Z_OK;
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }

  sim::Result<std::string> unpack(const std::string& name, std::size_t most) {
    if (!ready_) return sim::bad_input("zlib has no memory to unpack it", name);
    std::string out;
    for (;;) {
      feed();
      std::array<char, kBlock> block;
      stream_.next_out = reinterpret_cast<Bytef*>(block.data());
      stream_.avail_out = static_cast<uInt>(block.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t got = block.size() - stream_.avail_out;
      if (out.size() + got > most)
        return sim::bad_input(
            fmt::format("gzip data of more than {} bytes unpacked, which is too much", most), name);
      out.append(block.data(), got);
      if (status == Z_STREAM_END) {
        if (left() == 0 || !next_member()) return out;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        return sim::bad_input(fmt::format("damaged gzip data after {} bytes: {}", out.size(),
                                          stream_.msg != nullptr ? stream_.msg : "no reason given"),
                              name);
      } else if (got == 0 && left() == 0) {
        return sim::bad_input(
            fmt::format("the gzip data ends after {} bytes without its end mark: cut off?",
                        out.size()),
            name);
      }
    }
  }

 private:
  [[nodiscard]] std::size_t left() const { return stream_.avail_in + packed_.size(); }

  // zlib counts its input in 32 bits.
  void feed() {
    if (stream_.avail_in != 0 || packed_.empty()) return;
    const std::size_t size = std::min<std::size_t>(packed_.size(), std::size_t{1} << 30);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_.data()));
    stream_.avail_in = static_cast<uInt>(size);
    packed_.remove_prefix(size);
  }

  // Zeros that pad the end of a file are no member.
  bool next_member() {
    feed();
    return *stream_.next_in == 0x1f && inflateReset(&stream_) == Z_OK;
  }

  std::string_view packed_;
  z_stream stream_{};
  bool ready_ = false;
};

bool is_tar(std::string_view text) {
  constexpr std::size_t kMagic = 257;
  return text.size() > kMagic && text.substr(kMagic).starts_with("ustar");
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

sim::Result<std::string> gunzip(std::string_view packed, const std::string& name,
                                std::size_t most) {
  RAILYARD_ASSIGN(std::string text, Inflater(packed).unpack(name, most));
  if (is_tar(text))
    return sim::bad_input("a tar archive: unpack it (tar xzf) and name the trace in it", name);
  return text;
}

}  // namespace railyard::calibrate
