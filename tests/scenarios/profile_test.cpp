#include "scenarios/profile.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

constexpr std::string_view kProfile = R"(railyard_profile: 1
name: test
gpu:
  sms: 132
  peak_fp32: 67TFLOP/s
  peak_tf32: 494.7TFLOP/s
  peak_fp16: 989.4TFLOP/s
  hbm_bandwidth: 3.35TB/s
  hbm_capacity: 80GiB
host: {op_launch: 5us, launch_latency: 2.5us}
network: {proxy_send: 250ns}
links:
  nvlink: {efficiency: 0.82, latency: 700ns}
  nic: {efficiency: 0.95}
protocols:
  LL: {hop_latency: 600ns, channel_rate: 20GB/s}
  Simple: {op_overhead: 1.2us}
provenance:
  - {parameters: [gpu], origin: datasheet, source: "vendor datasheet"}
  - {parameters: [links.nvlink.efficiency, protocols.LL], origin: profile, source: "fit: a, b"}
)";

sim::Parameters profile_of(std::string_view text) {
  auto result = profile_from_text(text, "p.yaml");
  REQUIRE_MESSAGE(result.ok(), result.error().text());
  return std::move(result).value();
}

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kProfile);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_with(std::string_view from, std::string_view to) {
  const auto result = profile_from_text(replaced(from, to), "p.yaml");
  return result.ok() ? "no error" : result.error().text();
}

const sim::Provenance& origin_of(const sim::Parameters& parameters, std::string_view path) {
  const auto found =
      std::find_if(parameters.provenance.begin(), parameters.provenance.end(),
                   [&](const sim::Provenance& entry) { return entry.parameter == path; });
  REQUIRE(found != parameters.provenance.end());
  return *found;
}

TEST_CASE("a profile gives numbers and where they come from") {
  const sim::Parameters p = profile_of(kProfile);
  CHECK(p.name == "test");
  CHECK(p.gpu.sms == 132);
  CHECK(p.gpu.peak_fp16.per_second == doctest::Approx(989.4e12));
  CHECK(p.gpu.hbm_capacity == sim::bytes(std::int64_t{80} << 30));
  CHECK(p.gpu.gemm_efficiency == sim::GpuParameters{}.gemm_efficiency);
  CHECK(p.host.launch_latency == sim::nanoseconds(2500));
  CHECK(p.link(sim::LinkClass::nvlink).efficiency == 0.82);
  CHECK(p.link(sim::LinkClass::fabric).efficiency == 1.0);
  CHECK(p.protocol(sim::Protocol::ll).hop_latency == sim::nanoseconds(600));
  CHECK(p.protocol(sim::Protocol::simple).op_overhead == sim::nanoseconds(1200));

  REQUIRE(p.provenance.size() == parameter_paths().size());
  CHECK(p.provenance.front().parameter == "gpu.sms");
  CHECK(origin_of(p, "gpu.hbm_bandwidth").origin == sim::Origin::datasheet);
  CHECK(origin_of(p, "links.nvlink.efficiency").source == "fit: a, b");
  CHECK(origin_of(p, "protocols.LL.op_overhead").origin == sim::Origin::profile);
  CHECK(origin_of(p, "links.nic.efficiency").source == "not stated");
  CHECK(origin_of(p, "links.fabric.latency").origin == sim::Origin::device_class);
}

TEST_CASE("a profile that was written reads back the same") {
  const sim::Parameters first = profile_of(kProfile);
  const std::string text = write_profile(first);
  const sim::Parameters second = profile_of(text);
  CHECK(write_profile(second) == text);
  CHECK(second.gpu.peak_fp16 == first.gpu.peak_fp16);
  CHECK(second.gpu.hbm_bandwidth == first.gpu.hbm_bandwidth);
  CHECK(second.host.launch_latency == first.host.launch_latency);
  CHECK(second.protocol(sim::Protocol::ll).channel_rate ==
        first.protocol(sim::Protocol::ll).channel_rate);
  REQUIRE(second.provenance.size() == first.provenance.size());
  for (std::size_t i = 0; i < first.provenance.size(); ++i) {
    CHECK(second.provenance[i].parameter == first.provenance[i].parameter);
    CHECK(second.provenance[i].origin == first.provenance[i].origin);
    CHECK(second.provenance[i].source == first.provenance[i].source);
  }
}

TEST_CASE("what is wrong with a profile is said with its place") {
  CHECK(error_with("railyard_profile: 1", "railyard_profile: 2") ==
        "p.yaml:1:19: railyard_profile: 2 is out of range (1 to 1)");
  CHECK(error_with("railyard_profile: 1\n", "") ==
        "p.yaml:1:1: the key 'railyard_profile' is missing");
  CHECK(error_with("sms: 132", "sms: 0") ==
        "p.yaml:4:8: gpu.sms: must be 1 to 100,000 (streaming multiprocessors)");
  CHECK(error_with("  sms: 132\n", "") ==
        "p.yaml:1:1: gpu.sms: must be 1 to 100,000 (streaming multiprocessors)");
  CHECK(error_with("efficiency: 0.82", "efficiency: 1.2") ==
        "p.yaml:13:24: links.nvlink.efficiency: must be 0.001 to 1 (achievable share of the line "
        "rate, 0..1)");
  CHECK(error_with("latency: 700ns", "latency: 11s") ==
        "p.yaml:13:39: links.nvlink.latency: must be at most 10 s (of one link, the switch behind "
        "it included)");
  CHECK(
      error_with("latency: 700ns", "latency: 700")
          .starts_with(
              "p.yaml:13:39: links.nvlink.latency: '700' is not a duration: the unit is missing"));
  CHECK(error_with("latency: 700ns", "latncy: 700ns") ==
        "p.yaml:13:30: links.nvlink: unknown key 'latncy'; did you mean 'latency'? (keys: "
        "efficiency, latency)");
  CHECK(error_with("  nvlink:", "  nvlnk:")
            .starts_with("p.yaml:13:3: links: unknown key 'nvlnk'; did you mean 'nvlink'?"));
  CHECK(error_with("peak_fp32: 67TFLOP/s", "peak_fp32: -1TFLOP/s")
            .starts_with(
                "p.yaml:5:14: gpu.peak_fp32: '-1TFLOP/s' is not a compute rate: it is negative"));
}

TEST_CASE("origins must name parameters, once") {
  CHECK(error_with("[gpu]", "[gpu.smms]") ==
        "p.yaml:19:19: provenance[0].parameters[0]: no parameter 'gpu.smms'; did you mean "
        "'gpu.sms'?");
  CHECK(error_with("[gpu]", "[gpu, gpu.sms]") ==
        "p.yaml:19:24: provenance[0].parameters[1]: the origin of 'gpu.sms' is stated twice");
  CHECK(error_with("origin: datasheet", "origin: scenario") ==
        "p.yaml:19:5: provenance[0]: a profile's origin is profile, class or datasheet");
  CHECK(error_with("origin: datasheet, ", "") ==
        "p.yaml:19:5: provenance[0]: the key 'origin' is missing");
}

TEST_CASE("a scenario's own values are recorded as such") {
  sim::Parameters p = profile_of(kProfile);
  const auto block = parse_yaml("links: {nvlink: {efficiency: 0.5}}\ngpu: {sms: 8}\n", "s.yaml");
  REQUIRE(block.ok());
  REQUIRE(override_parameters({&block.value(), "parameters"}, true, p).ok());
  CHECK(p.link(sim::LinkClass::nvlink).efficiency == 0.5);
  CHECK(p.link(sim::LinkClass::nvlink).latency == sim::nanoseconds(700));
  CHECK(p.gpu.sms == 8);
  CHECK(origin_of(p, "links.nvlink.efficiency").origin == sim::Origin::scenario);
  CHECK(origin_of(p, "links.nvlink.efficiency").source == "s.yaml:1:30");
  CHECK(origin_of(p, "links.nvlink.latency").source == "not stated");
  const auto bad = parse_yaml("host: {op_launch: 60s}", "s.yaml");
  CHECK(override_parameters({&bad.value(), "parameters"}, true, p).error().text() ==
        "s.yaml:1:19: parameters.host.op_launch: must be at most 10 s (host time per kernel "
        "launched by the framework)");
}

TEST_CASE("validate: every number has a range") {
  sim::Parameters p = profile_of(kProfile);
  CHECK(sim::validate(p).ok());
  p.gpu.comm_hbm_factor = -1;
  CHECK(sim::validate(p).error().where == "gpu.comm_hbm_factor");
  p.gpu.comm_hbm_factor = std::numeric_limits<double>::quiet_NaN();
  CHECK(sim::validate(p).error().message.starts_with("must be 0 to 100"));
  p.gpu.comm_hbm_factor = 0;
  p.gpu.peak_tf32 = {};
  CHECK(sim::validate(p).ok());
  p.protocols[3].wire_efficiency = 0;
  CHECK(sim::validate(p).error().where == "protocols.plain.wire_efficiency");
  CHECK(sim::validate(sim::Parameters{}).error().where == "gpu.sms");
}

TEST_CASE("profiles are found by name or by path") {
  const tests::TemporaryDirectory dir;
  const std::string file = dir.write("mine/p.yaml", kProfile);
  Node node;
  node.mark = {std::make_shared<const std::string>(dir.path("s.yaml")), 3, 10};
  const Place place{&node, "profile"};
  CHECK(find_profile(place, "mine/p.yaml").value() == file);
  CHECK(find_profile(place, file).value() == file);
  CHECK(find_profile(place, "no-such-profile")
            .error()
            .text()
            .starts_with(dir.path("s.yaml") +
                         ":3:10: profile: no shipped profile 'no-such-profile'"));
  const auto read = read_profile(file);
  REQUIRE(read.ok());
  CHECK(read.value().file.hash == fnv1a(kProfile));
  CHECK(read_profile(dir.path("gone.yaml")).error().text() ==
        dir.path("gone.yaml") + ": no such file");
}

}  // namespace
}  // namespace railyard::scenarios
