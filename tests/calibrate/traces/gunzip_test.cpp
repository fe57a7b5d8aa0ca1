// gzip: a stream that Python's gzip module wrote, whole, cut, damaged, twice.
#include "calibrate/traces/gunzip.h"

#include "tests/calibrate/readers/support.h"

using namespace railyard::calibrate;  // NOLINT: a test's own names

namespace {

constexpr unsigned char kPacked[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                     0xab, 0x56, 0x2a, 0x29, 0x4a, 0x4c, 0x4e, 0x75, 0x2d, 0x4b,
                                     0xcd, 0x2b, 0x29, 0x56, 0xb2, 0x52, 0x88, 0x8e, 0xad, 0xe5,
                                     0x02, 0x00, 0x3a, 0x10, 0xcf, 0x2a, 0x14, 0x00, 0x00, 0x00};
const std::string kText = "{\"traceEvents\": []}\n";

std::string packed() { return {reinterpret_cast<const char*>(kPacked), sizeof(kPacked)}; }

std::string error_of(const std::string& bytes, std::size_t most = 1000) {
  const auto result = gunzip(bytes, "t.gz", most);
  REQUIRE_FALSE(result.ok());
  return result.error().text();
}

}  // namespace

TEST_CASE("gunzip: one member, several, and padding behind the last") {
  CHECK(is_gzip(packed()));
  CHECK_FALSE(is_gzip(kText));
  CHECK(gunzip(packed(), "t.gz").value() == kText);
  CHECK(gunzip(packed() + packed(), "t.gz").value() == kText + kText);
  CHECK(gunzip(packed() + std::string(100, '\0'), "t.gz").value() == kText);
}

TEST_CASE("gunzip: cut off, damaged, too large") {
  CHECK(error_of(packed().substr(0, 30)) ==
        "t.gz: the gzip data ends after 19 bytes without its end mark: cut off?");
  CHECK(error_of(packed().substr(0, 3)) ==
        "t.gz: the gzip data ends after 0 bytes without its end mark: cut off?");
  std::string damaged = packed();
  damaged[34] = 'x';  // of the checksum
  CHECK(error_of(damaged) == "t.gz: damaged gzip data after 20 bytes: incorrect data check");
  CHECK(error_of(packed(), 19) ==
        "t.gz: gzip data of more than 19 bytes unpacked, which is too much");
}

TEST_CASE("gunzip: an archive of several files is named as such") {
  using namespace railyard::tests::readers;  // NOLINT
  if (!has_samples()) RAILYARD_SKIP("no samples");
  const auto result = gunzip(text_of(sample_path("traces/chakra_et_small")), "c.tgz");
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().text() ==
        "c.tgz: a tar archive: unpack it (tar xzf) and name the trace in it");
}
