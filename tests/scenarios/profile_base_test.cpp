// Profiles based on others, and lists of profiles.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "scenarios/profile.h"
#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

using tests::error_of;

constexpr std::string_view kComplete =
    "railyard_profile: 1\nname: whole\n"
    "gpu: {sms: 10, peak_fp32: 1TFLOP/s, peak_fp16: 2TFLOP/s, hbm_bandwidth: 1TB/s,\n"
    "      hbm_capacity: 1GiB}\n"
    "links: {nvlink: {efficiency: 0.8, latency: 300ns}, nic: {efficiency: 0.9}}\n"
    "provenance:\n"
    "  - {parameters: [gpu], origin: datasheet, source: sheet}\n"
    "  - {parameters: [links.nvlink], origin: class, source: from below}\n";

const sim::Provenance& origin_of(const sim::Parameters& parameters, std::string_view path) {
  const auto found = std::ranges::find(parameters.provenance, path, &sim::Provenance::parameter);
  REQUIRE(found != parameters.provenance.end());
  return *found;
}

std::string profile_error(const std::string& path) {
  const auto read = read_profile(path);
  return read.ok() ? "no error" : read.error().text();
}

TEST_CASE("what a profile does not state is its base's, with the base's origin") {
  const tests::TemporaryDirectory dir;
  dir.write("a/whole.yaml", kComplete);
  const std::string top = dir.write("top.yaml",
                                    "railyard_profile: 1\nname: top\nbase: a/whole.yaml\n"
                                    "links: {nvlink: {efficiency: 0.7}}\n"
                                    "network: {proxy_send: 1us}\n"
                                    "provenance:\n"
                                    "  - {parameters: [network.proxy_send], origin: class, "
                                    "source: mine}\n");
  const auto read = read_profile(top);
  REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().text()));
  const sim::Parameters& p = read.value().parameters;
  CHECK(p.name == "top");
  CHECK(p.gpu.sms == 10);
  CHECK(p.link(sim::LinkClass::nvlink).efficiency == 0.7);
  CHECK(p.link(sim::LinkClass::nvlink).latency == sim::nanoseconds(300));
  CHECK(p.network.proxy_send == sim::microseconds(1));
  REQUIRE(p.provenance.size() == parameter_paths().size());
  CHECK(origin_of(p, "gpu.sms").source == "sheet");
  CHECK(origin_of(p, "links.nvlink.latency").source == "from below");
  CHECK(origin_of(p, "links.nvlink.efficiency").source == "not stated");  // stated anew, no origin
  CHECK(origin_of(p, "network.proxy_send").source == "mine");
  CHECK(origin_of(p, "links.fabric.latency").origin == sim::Origin::device_class);
  CHECK(read.value().file.path == top);
  REQUIRE(read.value().bases.size() == 1);
  CHECK(read.value().bases.front().path == dir.path("a/whole.yaml"));
  // Written, it stands alone.
  const auto again = profile_from_text(write_profile(p), "again", false);
  REQUIRE(again.ok());
  CHECK(write_profile(again.value()) == write_profile(p));
}

TEST_CASE("bases that cannot be read are said with their place") {
  const tests::TemporaryDirectory dir;
  const auto named = [&](const std::string& name, const std::string& base) {
    return dir.write(name, "railyard_profile: 1\nname: x\nbase: " + base + "\n");
  };
  const std::string own = named("own.yaml", "./own.yaml");
  CHECK(profile_error(own).starts_with(own + ":3:7: base: the profile is based on itself: "));
  named("b.yaml", "./c.yaml");
  named("c.yaml", "./d.yaml");
  const std::string round = profile_error(named("d.yaml", "./b.yaml"));
  CHECK(round.find("the profile is based on itself: ") != std::string::npos);
  CHECK(std::ranges::count(round, '>') == 3);  // d -> b -> c -> d
  CHECK(profile_error(named("lost.yaml", "./gone.yaml")) ==
        dir.path("lost.yaml") + ":3:7: base: " + dir.path("./gone.yaml") + ": no such file");
  CHECK(profile_error(named("none.yaml", "no-such"))
            .starts_with(dir.path("none.yaml") + ":3:7: base: no shipped profile 'no-such'"));
  CHECK(profile_from_text("railyard_profile: 1\nname: x\nbase: h100-hgx\n", "t", false)
            .error()
            .text() == "t:3:7: base: 'base' is not allowed where no files may be read");
}

TEST_CASE("a wrong value of a part is reported in the part, a missing one where all is together") {
  const tests::TemporaryDirectory dir;
  dir.write("part.yaml",
            "railyard_profile: 1\nname: part\npartial: true\nlinks: {nic: {efficiency: 2}}\n"
            "gpu: {sms: 1, peak_fp32: 1TFLOP/s, peak_fp16: 1TFLOP/s, hbm_bandwidth: 1TB/s, "
            "hbm_capacity: 1GB}\n");
  const std::string on_part =
      dir.write("on.yaml", "railyard_profile: 1\nname: on\nbase: ./part.yaml\n");
  CHECK(profile_error(on_part).starts_with(dir.path("./part.yaml") +
                                           ":4:27: links.nic.efficiency: must be 0.001 to 1"));
  dir.write("little.yaml",
            "railyard_profile: 1\nname: little\npartial: true\nhost: {op_launch: 1us}\n");
  const std::string on_little =
      dir.write("on2.yaml", "railyard_profile: 1\nname: on2\nbase: ./little.yaml\n");
  CHECK(profile_error(on_little).starts_with(on_little + ":1:1: gpu.sms: must be 1 to 100,000"));
  CHECK(profile_error(dir.path("little.yaml")) ==
        dir.path("little.yaml") +
            ": the profile states only some parameters (gpu.sms is missing); name it behind "
            "another one");
}

std::string scenario(const std::string& more) {
  return "railyard: 1\ncluster: {machine: flat, nodes: 2}\n"
         "traffic: {pattern: all-to-all, size: 1MiB}\n" +
         more;
}

TEST_CASE("a list of profiles: later ones state their values over the earlier") {
  const tests::TemporaryDirectory dir;
  dir.write("whole.yaml", kComplete);
  dir.write("net.yaml",
            "railyard_profile: 1\nname: net\npartial: true\nlinks: {nic: {efficiency: 0.5}}\n"
            "provenance:\n  - {parameters: [links.nic], origin: class, source: the net}\n");
  const std::string top = dir.write("s.yaml", scenario("profile: [./whole.yaml, ./net.yaml]\n"
                                                       "parameters: {network: {flush: 2us}}\n"));
  const auto read = read_scenario(top);
  REQUIRE_MESSAGE(read.ok(), error_of(read));
  const Scenario& s = read.value();
  CHECK(s.profile == "./whole.yaml + ./net.yaml");
  CHECK(s.parameters.name == "whole + net");
  CHECK(s.parameters.link(sim::LinkClass::nic).efficiency == 0.5);
  CHECK(s.parameters.link(sim::LinkClass::nvlink).efficiency == 0.8);
  CHECK(s.parameters.network.flush == sim::microseconds(2));
  CHECK(origin_of(s.parameters, "links.nic.efficiency").source == "the net");
  CHECK(origin_of(s.parameters, "links.nvlink.latency").source == "from below");
  CHECK(origin_of(s.parameters, "network.flush").origin == sim::Origin::scenario);
  CHECK(s.inputs.size() == 3);

  // The resolved text names both by full paths.
  const std::string resolved = dir.write("elsewhere/r.yaml", resolved_yaml(s));
  const auto again = read_scenario(resolved);
  REQUIRE_MESSAGE(again.ok(), error_of(again));
  CHECK(again.value().parameters.link(sim::LinkClass::nic).efficiency == 0.5);
  CHECK(resolved_yaml(again.value()) == resolved_yaml(s));

  const std::string empty = dir.write("e.yaml", scenario("profile: []\n"));
  CHECK(error_of(read_scenario(empty)) == empty + ":4:10: profile: the list is empty");
  const std::string alone = dir.write("p.yaml", scenario("profile: [./net.yaml, ./whole.yaml]\n"));
  CHECK(error_of(read_scenario(alone)).find("profile[0]: ") != std::string::npos);
  CHECK(error_of(read_scenario(alone)).find("states only some parameters") != std::string::npos);
}

TEST_CASE("parts are no profiles by themselves") {
  const std::vector<std::string> names = shipped_profiles();
  const std::set<std::string> shipped(names.begin(), names.end());
  for (const char* part : {"class-hopper", "class-ada", "net-ib", "net-efa", "net-tcp"}) {
    CHECK(shipped.count(part) == 0);
    CHECK(find_profile({}, part).ok());
  }
  CHECK(shipped.count("h100-hgx") == 1);
  CHECK(shipped.count("gh200") == 1);
}

TEST_CASE("machines' profiles have their generation's constants and their own figures") {
  const auto read = [](const std::string& name) {
    return read_profile(find_profile({}, name).value()).value().parameters;
  };
  const auto rate = [](const sim::Parameters& p) {
    return p.protocol(sim::Protocol::ll).channel_rate;
  };
  const sim::Parameters h100 = read("h100-hgx");
  const sim::Parameters a100 = read("a100-dgx");
  const sim::Parameters v100 = read("v100-dgx1");
  const sim::Parameters gh200 = read("gh200");
  CHECK(h100.gpu.sms == 132);
  CHECK(gh200.gpu.hbm_capacity == sim::bytes(96'000'000'000));
  CHECK(gh200.link(sim::LinkClass::c2c).efficiency < h100.link(sim::LinkClass::c2c).efficiency);
  CHECK(rate(gh200) == rate(h100));
  CHECK(rate(read("h20-hgx")) == rate(h100));
  CHECK(read("h20-hgx").gpu.sms == 78);
  CHECK(v100.gpu.peak_tf32.per_second == 0);
  CHECK(v100.link(sim::LinkClass::pcie).efficiency == 0.8);
  CHECK(rate(v100) == rate(a100));
  CHECK(rate(read("rtx4090-pcie")) == rate(a100));  // over class-ada and a100-pcie
  CHECK(rate(v100) < rate(h100));
}

}  // namespace
}  // namespace railyard::scenarios
