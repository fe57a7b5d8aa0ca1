#include "calibrate/readers/probe.h"

#include <doctest/doctest.h>

#include <string>

namespace calibrate = railyard::calibrate;

namespace {

const char* const kReport = R"({
 "schema": "railyard-probe", "schema_version": 1, "later": {"unknown": [1, null]},
 "tool": "probe_tcp", "version": "0.1.0", "host": "node07", "started": "2026-01-31T12:00:00Z",
 "command": ["probe_tcp", "--loopback"],
 "software": {"kernel": "6.1"},
 "devices": [{"kind": "gpu", "name": "NVIDIA H200", "facts": {"bus_id": "0000:0f:00.0"}}],
 "notes": ["P2P is off"],
 "rows": [
  {"kind": "tcp.stream", "labels": {"sockets": "4"}, "bytes": 65536, "moved_bytes": 65536,
   "time_us": {"median": 8.192, "p10": 8, "p90": 9, "min": 7.5, "max": 12, "count": 20}},
  {"kind": "cuda.p2p_access", "labels": {"from": "0", "to": "1"}, "value": 1, "unit": "bool"}
 ],
 "fits": [{"kind": "tcp.stream", "labels": {"sockets": "4"}, "latency_us": 0.5,
           "bytes_per_second": 8e9, "worst_error": 0.25, "points": 2}]})";

// The report with the first `from` in it replaced, and what the reader says of that.
std::string error_of(const std::string& from, const std::string& to) {
  std::string text = kReport;
  const std::size_t position = text.find(from);
  REQUIRE(position != std::string::npos);
  text.replace(position, from.size(), to);
  const auto result = calibrate::read_probe(text, "p.json");
  return result.ok() ? "" : result.error().text();
}

}  // namespace

TEST_CASE("a probe's report is read whole") {
  const auto result = calibrate::read_probe(kReport, "p.json");
  REQUIRE(result.ok());
  const calibrate::ProbeReport& report = result.value();
  CHECK(report.source == "p.json");
  CHECK(report.tool == "probe_tcp");
  CHECK(report.host == "node07");
  CHECK(report.command.size() == 2);
  CHECK(report.software.at("kernel") == "6.1");
  REQUIRE(report.devices.size() == 1);
  CHECK(report.devices[0].facts.at("bus_id") == "0000:0f:00.0");
  CHECK(report.notes.at(0) == "P2P is off");
  REQUIRE(report.rows.size() == 2);
  REQUIRE(report.rows[0].time_us.has_value());
  CHECK(report.rows[0].time_us->p90 == 9);
  CHECK(report.rows[0].time_us->count == 20);
  CHECK(report.rows[0].bytes_per_second() == doctest::Approx(8e9));  // 65536 B / 8.192 us
  CHECK_FALSE(report.rows[1].time_us.has_value());
  CHECK(report.rows[1].value == 1);
  CHECK(report.rows[1].bytes_per_second() == 0);
  REQUIRE(report.fits.size() == 1);
  CHECK(report.fits[0].bytes_per_second == 8e9);
}

TEST_CASE("what is wrong with a probe's report is said with its place") {
  CHECK(error_of("\"schema\": \"railyard-probe\", ", "") ==
        "p.json: not a probe's report: there is no \"schema\"");
  CHECK(error_of("railyard-probe", "other\\nthing") ==
        "p.json: not a probe's report: the schema is \"other\\nthing\"");
  CHECK(error_of("\"schema_version\": 1", "\"schema_version\": 2") ==
        "p.json: schema_version 2 is not known, only up to 1");
  CHECK(error_of("\"tool\": \"probe_tcp\", ", "") == "p.json: \"tool\" is missing");
  CHECK(error_of("\"tool\": \"probe_tcp\"", "\"tool\": 3") == "p.json: tool: not a text");
  CHECK(error_of("\"count\": 20", "\"count\": 0") ==
        "p.json: rows[0]: time_us: a summary of no samples");
  CHECK(error_of("\"count\": 20", "\"count\": 2.5") ==
        "p.json: rows[0]: time_us: count: not a whole number of 0 or more");
  CHECK(error_of("\"bytes\": 65536", "\"bytes\": 18446744073709551615") ==
        "p.json: rows[0]: bytes: not a whole number of 0 or more");
  CHECK(error_of("\"min\": 7.5", "\"min\": 0") == "p.json: rows[0]: time_us: a time of 0 or less");
  CHECK(error_of("\"p10\": 8,", "\"p10\": 8.5,") ==
        "p.json: rows[0]: time_us: min, p10, median, p90 and max are not in order");
  CHECK(error_of("\"p90\": 9", "\"p90\": null") == "p.json: rows[0]: time_us: p90: not a number");
  CHECK(error_of("\"value\": 1, ", "") == "p.json: rows[1]: a row has either time_us or value");
  CHECK(error_of("{\"sockets\": \"4\"}", "{\"sockets\": 4}") ==
        "p.json: rows[0]: labels: \"sockets\": not a text");
  CHECK(error_of("{\"sockets\": \"4\"}", "[]") == "p.json: rows[0]: labels: not an object");
  CHECK(error_of("[\"P2P is off\"]", "\"P2P is off\"") == "p.json: notes: not a list");
  CHECK(error_of("\"latency_us\": 0.5", "\"latency_us\": -1") ==
        "p.json: fits[0]: a fit needs a latency of 0 or more and a bandwidth above 0");
  CHECK(error_of("\"kind\": \"tcp.stream\"", "\"kind\": \"\"") ==
        "p.json: rows[0]: a row needs a kind");
}

TEST_CASE("a probe's report that is no JSON, or only its beginning") {
  const auto error = [](std::string_view text) {
    return calibrate::read_probe(text, "p.json").error().text();
  };
  CHECK(error(std::string_view(kReport).substr(0, 300)) == "p.json:6: the JSON breaks off");
  CHECK(error("# nThread 1\n#\n") == "p.json:1: this is not JSON");
  CHECK(error("{\n\"a\": 1,\n oops}") == "p.json:3: this is not JSON");
  CHECK(error("") == "p.json:1: the JSON breaks off");
  CHECK(error("[1e999]") == "p.json: this is not JSON");
  CHECK(error("[]") == "p.json: not a probe's report: there is no \"schema\"");
  CHECK(calibrate::read_probe_file("/nonexistent/p.json").error().text() ==
        "/nonexistent/p.json: cannot be read");
}
