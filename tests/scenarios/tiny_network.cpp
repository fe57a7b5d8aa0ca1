#include "tests/scenarios/tiny_network.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "scenarios/training_result.h"

namespace railyard::tests {
namespace {

std::uint16_t stream_number(const scenarios::RunResult& result, const std::string& stream) {
  const auto found = std::ranges::find(result.stream_names, stream);
  REQUIRE_MESSAGE(found != result.stream_names.end(), "no stream ", stream);
  return static_cast<std::uint16_t>(found - result.stream_names.begin());
}

std::vector<sim::Span> spans_on(const scenarios::RunResult& result, const std::string& stream) {
  const std::uint16_t number = stream_number(result, stream);
  std::vector<sim::Span> spans;
  for (const sim::Span& span : result.spans)
    if (span.rank == 0 && span.stream == number) spans.push_back(span);
  std::ranges::stable_sort(spans, {}, &sim::Span::start);
  return spans;
}

// Ends of the optimizer's last kernels, by iteration.
std::vector<sim::Time> optimizer_ends(const scenarios::RunResult& result) {
  std::vector<sim::Time> ends;
  bool inside = false;
  for (const sim::Span& span : spans_on(result, "compute")) {
    const bool optimizer = result.span_names[span.name] == "optimizer";
    if (optimizer && inside) ends.back() = span.end;
    if (optimizer && !inside) ends.push_back(span.end);
    inside = optimizer;
  }
  return ends;
}

}  // namespace

const std::vector<std::vector<TinyShape>> kTinyUnits{
    {{1001, 512}, {512, 1}}, {{510, 512}, {7, 1}}, {{510, 512}, {7, 1}}, {{510, 512}, {7, 1}}};

std::string tiny_network() {
  std::string parameters;
  std::string layers;
  const auto add = [&](const std::string& name, const std::vector<TinyShape>& shapes) {
    for (std::size_t i = 0; i < shapes.size(); ++i)
      parameters += "      - {name: " + name + ".p" + std::to_string(i) + ", shape: [" +
                    std::to_string(shapes[i].rows) + ", " + std::to_string(shapes[i].columns) +
                    "]}\n";
  };
  const auto run = [&](const std::string& layer, const std::string& uses) {
    layers += "      - {name: " + layer + ", kind: gemm, parameters: [" + uses +
              "], forward_flops: 2e10, input_elements: 1000000, output_elements: 1000000}\n";
  };
  add("root", kTinyUnits[0]);
  for (std::size_t b = 0; b < 3; ++b) add("layers." + std::to_string(b), kTinyUnits[b + 1]);
  run("embed", "root.p0");
  for (std::size_t b = 0; b < 3; ++b) {
    const std::string name = "layers." + std::to_string(b);
    run(name + ".mlp", name + ".p0, " + name + ".p1");
  }
  run("head", "root.p1");
  return "    parameters:\n" + parameters + "    layers:\n" + layers;
}

std::string tiny_job(const std::string& key, const std::string& ranks, const std::string& more) {
  return "railyard: 1\ncluster: {machine: hgx-h100, nodes: 1}\nranks: {" + ranks +
         "}\nnccl: {algorithm: Ring, protocol: Simple, channels: 2}\n" + key +
         ":\n  batch_per_gpu: 4\n  precision: amp-bf16\n  optimizer: adamw\n  iterations: 2\n" +
         more + "  model:\n" + tiny_network();
}

std::map<sim::Collective, std::int64_t> sent_bytes(const scenarios::RunResult& result) {
  std::map<sim::Collective, std::int64_t> bytes;
  for (const scenarios::CallRow& row : result.training->calls)
    bytes[row.collective] += row.sent.raw();
  return bytes;
}

std::map<sim::Collective, std::int64_t> call_counts(const scenarios::RunResult& result) {
  std::map<sim::Collective, std::int64_t> calls;
  for (const scenarios::CallRow& row : result.training->calls) calls[row.collective] += row.count;
  return calls;
}

std::string streams_of(const scenarios::RunResult& result,
                       const std::vector<std::string>& streams) {
  const std::vector<sim::Time> ends = optimizer_ends(result);
  REQUIRE(ends.size() >= 2);
  const sim::Time from = ends[ends.size() - 2];
  std::string text;
  for (const std::string& stream : streams) {
    text += stream + "\n";
    for (const sim::Span& span : spans_on(result, stream))
      if (span.start >= from && span.start < ends.back())
        text += "  " + result.span_names[span.name] + "\n";
  }
  return text;
}

std::string without_comments(std::string_view golden) {
  std::istringstream lines{std::string(golden)};
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) text += line + "\n";
  }
  return text;
}

std::vector<std::string> streams_in(std::string_view golden) {
  std::istringstream lines{without_comments(golden)};
  std::vector<std::string> streams;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with(' ')) streams.push_back(line);
  return streams;
}

}  // namespace railyard::tests
