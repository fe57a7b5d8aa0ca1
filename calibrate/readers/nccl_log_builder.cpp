#include "calibrate/readers/nccl_log_builder.h"

#include <algorithm>

#include "sim/enum_table.h"

namespace railyard::calibrate::nccl_log {
namespace {

// "AllReduce: ..." or "AllReduce [Symmetric]: ...": the function's name is the first word.
std::optional<Function> function_at(std::string_view text) {
  const std::size_t size = text.find_first_of(": ");
  if (size == std::string_view::npos || size > 16) return std::nullopt;
  for (const auto& entry : sim::EnumTable<Function>::entries)
    if (sim::equal_ignoring_case(entry.name, text.substr(0, size))) return entry.value;
  return std::nullopt;
}

}  // namespace

Builder::Builder(std::string source, const Options& options) : options_(options) {
  log_.source = std::move(source);
}

// The first entry whose start fits handles the message.
const std::vector<Builder::Kind>& Builder::kinds() {
  static const std::vector<Kind> table{{"Channel ", &Builder::channel},
                                       {"CollNet ", &Builder::collnet},
                                       {"Coll ", &Builder::collnet},
                                       {"Ring ", &Builder::ring_hop},
                                       {"Trees ", &Builder::trees},
                                       {"Tree ", &Builder::tree},
                                       {"comm 0x", &Builder::communicator},
                                       {"ncclCommInit", &Builder::communicator},
                                       {"ncclCommSplit", &Builder::communicator},
                                       {"ncclCommShrink", &Builder::communicator},
                                       {"ncclCommGrow", &Builder::communicator},
                                       {"NVLS ", &Builder::nvls},
                                       {"MNNVL ", &Builder::mnnvl},
                                       {"threadThresholds ", &Builder::thresholds},
                                       {"P2P Chunksize ", &Builder::chunk_size},
                                       {"Connected ", &Builder::connected},
                                       {"Init timings ", &Builder::init_timings},
                                       {"Pattern ", &Builder::graph},
                                       {"=== System ", &Builder::system},
                                       {"CPU/", &Builder::system_root},
                                       {"+ ", &Builder::system_link},
                                       {"Paths from ", &Builder::paths_heading},
                                       {"--", &Builder::verbose_path},
                                       {"GPU/", &Builder::path_row},
                                       {"NET/", &Builder::net},
                                       {"NCCL version ", &Builder::version},
                                       {"RCCL version ", &Builder::version},
                                       {"cudaDriverVersion ", &Builder::driver},
                                       {"Using network ", &Builder::network},
                                       {"NCCL_", &Builder::variable},
                                       {"RCCL_", &Builder::variable},
                                       {"Latency/AlgBw |", &Builder::tuning_columns}};
  return table;
}

void Builder::line(std::string_view text, bool complete) {
  ++line_;
  ++log_.counts.lines;
  const std::vector<Segment>& segments = segmenter_.split(text, complete);
  const std::string_view before = segmenter_.before();
  if (!before.empty()) unprefixed(before, complete && segments.empty());
  for (const Segment& segment : segments) message(segment);
  if (segments.size() > 1) log_.counts.joined += segments.size() - 1;
}

void Builder::unprefixed(std::string_view text, bool complete) {
  if (text.find("CCL version ") != std::string_view::npos) find_version(text, !complete);
  const std::size_t first = text.find_first_not_of(' ');
  if (complete && first != std::string_view::npos && text[first] == '#') header_line(text);
}

void Builder::message(const Segment& segment) {
  ++log_.counts.messages;
  if (segment.level == Level::warn) {
    warning(segment);
    ++log_.counts.facts;
    return;
  }
  if (segment.level != Level::info) return;
  std::string_view text = segment.text;
  while (!text.empty() && text.back() == ' ' && !segment.torn) text.remove_suffix(1);
  Message message{segment, Scanner(text, segment.torn), line_, thread_of(segment)};
  const Outcome outcome = information(message);
  if (outcome == Outcome::fact) ++log_.counts.facts;
  if (outcome == Outcome::torn) ++log_.counts.torn;
}

Outcome Builder::information(Message& message) {
  const std::string_view text = message.text.rest();
  if (text.empty()) return Outcome::other;
  const char first = text.front();
  if (first == ' ' || (first >= '0' && first <= '9')) return indented(message);
  message.thread.in_graph = false;
  for (const Kind& kind : kinds())
    if (text.starts_with(kind.start)) return (this->*kind.handler)(message);
  if (const auto function = function_at(text)) return call_or_choice(message, *function);
  return Outcome::other;
}

// Lines that begin with blanks or a number: channels of a graph, nodes of the machine, rows of the
// tuning table, "N Bytes -> ...", "N coll channels, ...".
Outcome Builder::indented(Message& message) {
  const std::string_view text = message.text.rest();
  if (text.find('|') != std::string_view::npos) {
    const std::size_t word = text.find_first_not_of(' ');
    if (text.substr(word).starts_with("Algorithm ")) return tuning_columns(message);
    return tuning_row(message);
  }
  const std::size_t word = text.find_first_not_of(' ');
  if (word == std::string_view::npos) return Outcome::other;
  if (text.substr(word).starts_with("+ ")) return system_link(message);
  if (text.substr(word).starts_with("(")) return verbose_path(message);
  if (message.thread.in_graph) {
    const Outcome outcome = graph_channel(message);
    if (outcome != Outcome::other) return outcome;
    message.thread.in_graph = false;
  }
  if (text.find(" Bytes -> ") != std::string_view::npos) return choice(message, std::nullopt);
  if (text.find(" coll channels") != std::string_view::npos) return channel_counts(message);
  return Outcome::other;
}

Builder::Thread& Builder::thread_of(const Segment& segment) {
  const auto host = hosts_.try_emplace(std::string(segment.host), hosts_.size()).first->second;
  const auto [process, is_new] = processes_.try_emplace(
      {host, static_cast<std::uint64_t>(segment.pid)}, log_.processes.size());
  if (is_new) {
    log_.processes.push_back({.host = std::string(segment.host), .pid = segment.pid});
  }
  Thread& thread = threads_[{process->second, static_cast<std::uint64_t>(segment.tid)}];
  thread.process = process->second;
  return thread;
}

void Builder::bind(Message& message, std::size_t rank) {
  message.thread.rank = rank;
  if (message.segment.device < 0) return;
  by_device_[{message.thread.process, static_cast<std::uint64_t>(message.segment.device)}] = rank;
}

std::size_t Builder::new_rank(Message& message) {
  const std::size_t rank = log_.ranks.size();
  log_.ranks.emplace_back();
  shared_.emplace_back();
  log_.ranks[rank].process = message.thread.process;
  log_.ranks[rank].device = message.segment.device;
  bind(message, rank);
  return rank;
}

std::size_t Builder::initialising_rank(Message& message) {
  const std::size_t rank = message.thread.rank;
  if (rank == kNone || log_.ranks[rank].complete != 0) return new_rank(message);
  return rank;
}

std::size_t Builder::any_rank(Message& message) {
  if (message.thread.rank != kNone) return message.thread.rank;
  const auto found =
      by_device_.find({message.thread.process, static_cast<std::uint64_t>(message.segment.device)});
  if (found == by_device_.end()) return new_rank(message);
  message.thread.rank = found->second;
  return found->second;
}

// The rank that says `own_rank` of itself; several ranks can take turns on one thread.
std::size_t Builder::named_rank(Message& message, std::int64_t own_rank) {
  std::size_t rank = any_rank(message);
  if (log_.ranks[rank].rank < 0) set_rank_number(rank, own_rank);
  if (log_.ranks[rank].rank == own_rank) return rank;
  const auto found = by_rank_.find({message.thread.process, static_cast<std::uint64_t>(own_rank)});
  if (found != by_rank_.end()) return found->second;
  rank = new_rank(message);
  set_rank_number(rank, own_rank);
  return rank;
}

void Builder::set_rank_number(std::size_t rank, std::int64_t number) {
  log_.ranks[rank].rank = number;
  by_rank_[{log_.ranks[rank].process, static_cast<std::uint64_t>(number)}] = rank;
}

}  // namespace railyard::calibrate::nccl_log
