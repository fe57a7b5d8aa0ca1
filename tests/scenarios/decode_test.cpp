#include "scenarios/decode.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

namespace railyard::scenarios {
namespace {

Node parsed(std::string_view text) {
  auto result = parse_yaml(text, "d.yaml");
  REQUIRE_MESSAGE(result.ok(), result.error().text());
  return std::move(result).value();
}

struct Small {
  int count = 1;
  std::string name = "unset";
  std::optional<double> ratio;
};

std::string read(std::string_view text, Small& out) {
  const Node node = parsed(text);
  MapReader reader({&node, "small"});
  reader.required("count", out.count, 1, 10);
  reader.optional("name", out.name);
  reader.optional("ratio", out.ratio);
  const auto outcome = reader.finish();
  return outcome.ok() ? "no error" : outcome.error().text();
}

template <typename T>
std::string error_of(std::string_view text) {
  const Node node = parsed(text);
  T out{};
  const auto outcome = decode(Place{&node, "x"}, out);
  return outcome.ok() ? "no error" : outcome.error().text();
}

TEST_CASE("absent keys leave their variable alone") {
  Small small;
  CHECK(read("count: 3", small) == "no error");
  CHECK(small.count == 3);
  CHECK(small.name == "unset");
  CHECK_FALSE(small.ratio);
  CHECK(read("{count: +4, name: 5, ratio: 2.5e-1}", small) == "no error");
  CHECK(small.count == 4);
  CHECK(small.name == "5");
  CHECK(small.ratio == 0.25);
}

TEST_CASE("an unknown key is reported before a wrong value, and that before a missing key") {
  Small small;
  CHECK(read("{nmae: x, ratio: y}", small) ==
        "d.yaml:1:2: small: unknown key 'nmae'; did you mean 'name'? (keys: count, name, ratio)");
  CHECK(read("ratio: y", small) == "d.yaml:1:8: small.ratio: a number is expected, not 'y'");
  CHECK(read("ratio: 1", small) == "d.yaml:1:1: small: the key 'count' is missing");
  CHECK(read("{ratio: y, name: [1]}", small) ==
        "d.yaml:1:18: small.name: a single value is expected, not a list");  // `name` is read first
  CHECK(read("[1]", small) == "d.yaml:1:1: small: a map is expected, not a list");
  CHECK(read("count:", small) == "d.yaml:1:1: small.count: the key has no value");
}

TEST_CASE("scalars say what they expect") {
  CHECK(error_of<bool>("true") == "no error");
  CHECK(error_of<bool>("True") == "d.yaml:1:1: x: true or false is expected, not 'True'");
  CHECK(error_of<bool>("'true'") == "d.yaml:1:1: x: true or false is expected, not text in quotes");
  CHECK(error_of<bool>("[]") == "d.yaml:1:1: x: true or false is expected, not a list");
  CHECK(error_of<std::string>("''") == "d.yaml:1:1: x: the text is empty");
  CHECK(error_of<std::string>(std::string(5000, 'a')) ==
        "d.yaml:1:1: x: the text is longer than 4096 bytes");
  CHECK(error_of<std::string>("{}") == "d.yaml:1:1: x: a single value is expected, not a map");
  CHECK(error_of<std::uint32_t>("-1") == "d.yaml:1:1: x: -1 is out of range (0 to 4294967295)");
  CHECK(error_of<int>("0x10") == "d.yaml:1:1: x: a whole number is expected, not '0x10'");
  CHECK(error_of<int>("1e3") == "d.yaml:1:1: x: a whole number is expected, not '1e3'");
  CHECK(error_of<double>("inf") == "d.yaml:1:1: x: a number is expected, not 'inf'");
  CHECK(error_of<double>("1e999") == "d.yaml:1:1: x: a number is expected, not '1e999'");
  CHECK(error_of<std::vector<int>>("[1, x]") ==
        "d.yaml:1:5: x[1]: a whole number is expected, not 'x'");
}

TEST_CASE("quantities need their unit") {
  CHECK(error_of<sim::Bytes>("64MiB") == "no error");
  CHECK(error_of<sim::Bytes>("'64 MiB'") == "no error");
  CHECK(error_of<sim::Bytes>("64").starts_with("d.yaml:1:1: x: '64' is not a size: the unit is"));
  CHECK(
      error_of<sim::Bytes>("64M").starts_with("d.yaml:1:1: x: '64M' is not a size: unknown unit"));
  CHECK(error_of<sim::Bytes>("-1B").starts_with("d.yaml:1:1: x: '-1B' is not a size: it is negat"));
  CHECK(error_of<sim::Duration>("5").starts_with("d.yaml:1:1: x: '5' is not a duration: the unit"));
  CHECK(error_of<sim::Bandwidth>("400Gb").find("unknown unit 'Gb'") != std::string::npos);
  CHECK(error_of<sim::FlopsRate>("1GHz").find("unknown unit 'GHz'") != std::string::npos);
  CHECK(error_of<sim::Duration>("[1us]") ==
        "d.yaml:1:1: x: a single value is expected, not a list");
}

TEST_CASE("enums are read in any case and list their names") {
  CHECK(error_of<sim::Protocol>("ll128") == "no error");
  CHECK(error_of<sim::Protocol>("LL12") ==
        "d.yaml:1:1: x: unknown protocol 'LL12'; did you mean 'LL128'? (one of: LL, LL128, Simple, "
        "plain)");
}

TEST_CASE("structs with a field table are read by their fields") {
  const Node node = parsed("{efficiency: 0.5, latency: 1us}");
  sim::LinkParameters link;
  REQUIRE(decode(Place{&node, "l"}, link).ok());
  CHECK(link.efficiency == 0.5);
  CHECK(link.latency == sim::microseconds(1));
}

}  // namespace
}  // namespace railyard::scenarios
