#include "algorithms/nccl/tuner_file.h"

#include <fmt/format.h>

#include <charconv>

namespace railyard::algorithms::nccl {
namespace {

template <typename E>
struct PluginName {
  std::string_view name;
  E value;
};
constexpr std::array kFunctionNames{PluginName<Function>{"broadcast", Function::broadcast},
                                    PluginName<Function>{"reduce", Function::reduce},
                                    PluginName<Function>{"allgather", Function::all_gather},
                                    PluginName<Function>{"reducescatter", Function::reduce_scatter},
                                    PluginName<Function>{"allreduce", Function::all_reduce}};
constexpr std::array kAlgorithmNames{
    PluginName<Algorithm>{"tree", Algorithm::tree},
    PluginName<Algorithm>{"ring", Algorithm::ring},
    PluginName<Algorithm>{"collnet_direct", Algorithm::collnet_direct},
    PluginName<Algorithm>{"collnet_chain", Algorithm::collnet_chain},
    PluginName<Algorithm>{"nvls", Algorithm::nvls},
    PluginName<Algorithm>{"nvls_tree", Algorithm::nvls_tree},
    PluginName<Algorithm>{"pat", Algorithm::pat}};
constexpr std::array kProtocolNames{PluginName<Protocol>{"ll", Protocol::ll},
                                    PluginName<Protocol>{"ll128", Protocol::ll128},
                                    PluginName<Protocol>{"simple", Protocol::simple}};

constexpr std::size_t kRequired = 8;
constexpr std::size_t kMost = 10;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// One line being read: its fields, where it is, and the first thing wrong with it.
class LineReader {
 public:
  LineReader(std::string_view line, std::string where) : where_(std::move(where)) {
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = std::min(line.find(',', at), line.size());
      fields_.push_back(trim(line.substr(at, end - at)));
      at = end + 1;
    }
  }

  [[nodiscard]] std::size_t size() const { return fields_.size(); }

  template <typename E, std::size_t N>
  E name(std::size_t field, const std::array<PluginName<E>, N>& names, const char* what) {
    std::string known;
    for (const PluginName<E>& entry : names) {
      if (entry.name == fields_[field]) return entry.value;
      known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    fail(fmt::format("unknown {} '{}' (one of: {})", what, fields_[field], known));
    return E{};
  }

  template <typename T>
  T number(std::size_t field, const char* what) {
    T value{};
    const std::string_view text = fields_[field];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty())
      fail(fmt::format("{}: '{}' is no whole number in range", what, text));
    return value;
  }
  std::int32_t optional(std::size_t field, const char* what) {
    return field < fields_.size() ? number<std::int32_t>(field, what) : -1;
  }

  void fail(std::string why) {
    if (error_.empty()) error_ = std::move(why);
  }
  [[nodiscard]] sim::Result<void> result() const {
    if (error_.empty()) return {};
    return sim::bad_input(error_, where_);
  }

 private:
  std::vector<std::string_view> fields_;
  std::string where_;
  std::string error_;
};

sim::Result<TunerLine> parse_line(LineReader reader) {
  TunerLine line;
  if (reader.size() < kRequired || reader.size() > kMost) {
    reader.fail(
        fmt::format("{} fields; expected collective,min,max,algorithm,protocol,channels,"
                    "nodes,ranks[,numPipeOps[,regBuff]]",
                    reader.size()));
    return reader.result().error();
  }
  line.function = reader.name(0, kFunctionNames, "collective");
  line.min_bytes = reader.number<std::uint64_t>(1, "min_bytes");
  line.max_bytes = reader.number<std::uint64_t>(2, "max_bytes");
  line.algorithm = reader.name(3, kAlgorithmNames, "algorithm");
  line.protocol = reader.name(4, kProtocolNames, "protocol");
  line.channels = reader.number<std::int32_t>(5, "channels");
  line.nodes = reader.number<std::int32_t>(6, "nNodes");
  line.ranks = reader.number<std::int32_t>(7, "nRanks");
  line.pipe_ops = reader.optional(8, "numPipeOps");
  line.registered = reader.optional(9, "regBuff");
  if (line.channels != -1 && (line.channels < 1 || line.channels > 64))
    reader.fail(fmt::format("channels: {} (1 to 64, or -1)", line.channels));
  RAILYARD_TRY(reader.result());
  return line;
}

bool matches(std::int32_t wanted, std::int32_t actual) { return wanted == -1 || wanted == actual; }

bool matches(const TunerLine& line, const TunerQuestion& question) {
  return line.function == question.function && question.bytes >= line.min_bytes &&
         question.bytes <= line.max_bytes && matches(line.nodes, question.nodes) &&
         matches(line.ranks, question.ranks) && matches(line.pipe_ops, question.pipe_ops) &&
         matches(line.registered, 0);
}

}  // namespace

sim::Result<TunerFile> parse_tuner_file(std::string_view text, const std::string& name) {
  TunerFile tuner;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('#') || trim(line).empty()) continue;
    RAILYARD_ASSIGN(const TunerLine parsed,
                    parse_line(LineReader(line, fmt::format("{}:{}", name, number))));
    tuner.lines.push_back(parsed);
  }
  return tuner;
}

std::int32_t apply_tuner(const TunerFile& tuner, const TunerQuestion& question,
                         PerAlgorithm<float>& costs) {
  const std::int32_t preset = tuner.reading == ChannelReading::as_shipped ? 1 : 0;
  for (const TunerLine& line : tuner.lines) {
    if (!matches(line, question)) continue;
    float& cost = costs[index_of(line.algorithm)][index_of(line.protocol)];
    if (cost == -1) continue;
    cost = 0;
    return line.channels == -1 ? preset : line.channels;
  }
  return preset;
}

}  // namespace railyard::algorithms::nccl
