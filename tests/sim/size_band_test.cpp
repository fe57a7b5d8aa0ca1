#include "sim/size_band.h"

#include <doctest/doctest.h>

using namespace railyard::sim;

TEST_CASE("size band: bands end where the table says") {
  CHECK(size_band(bytes(0)) == SizeBand::small);
  CHECK(size_band(bytes(65'535)) == SizeBand::small);
  CHECK(size_band(bytes(65'536)) == SizeBand::medium);
  CHECK(size_band(bytes(16 << 20)) == SizeBand::medium);
  CHECK(size_band(bytes((16 << 20) + 1)) == SizeBand::large);
}
