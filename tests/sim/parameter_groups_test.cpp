#include "sim/parameter_groups.h"

#include <doctest/doctest.h>

using namespace railyard;
using namespace railyard::sim;

TEST_CASE("parameter groups: single parameters by path, in SI units") {
  Parameters parameters;
  REQUIRE(set_parameter(parameters, "protocols.LL.hop_latency", 1.5e-6).ok());
  CHECK(parameters.protocol(Protocol::ll).hop_latency == microseconds(3) / 2);
  REQUIRE(set_parameter(parameters, "links.nvlink.efficiency", 0.8).ok());
  CHECK(parameters.link(LinkClass::nvlink).efficiency == 0.8);
  REQUIRE(set_parameter(parameters, "nvls.copy_rate", 60e9).ok());
  CHECK(parameters.nvls.copy_rate == gigabytes_per_second(60));
  REQUIRE(set_parameter(parameters, "network.rendezvous_from", 8192).ok());
  CHECK(parameters.network.rendezvous_from == bytes(8192));
  REQUIRE(set_parameter(parameters, "gpu.sms", 132).ok());
  CHECK(parameter_value(parameters, "gpu.sms").value() == 132);
  CHECK(parameter_value(parameters, "nvls.copy_rate").value() == doctest::Approx(60e9));
  const auto unknown = parameter_value(parameters, "links.nvlnk.efficiency");
  CHECK(unknown.error().message ==
        "no parameter 'links.nvlnk.efficiency'; did you mean 'links.nvlink.efficiency'?");
}
