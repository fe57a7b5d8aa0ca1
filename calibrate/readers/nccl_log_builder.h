// Builder: turns messages into facts, and decides whose they are (the rules are in nccl_log.h).
//
// Each kind of message has one handler, found by how the text begins. A handler answers `fact`
// (understood and kept), `torn` (its kind, but broken off) or `other` (not its kind after all, or
// of no interest). Handlers are grouped by subject:
//   nccl_log_init.cpp     communicators, channels, rings, trees, connections
//   nccl_log_graph.cpp    search results, NCCL's picture of the machine
//   nccl_log_process.cpp  versions, variables, networks, warnings, nccl-tests' header
//   nccl_log_calls.cpp    calls, choices, the tuning table
// finish() groups ranks into communicators (nccl_log_finish.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calibrate/readers/nccl_log.h"
#include "calibrate/readers/nccl_log_scan.h"
#include "calibrate/readers/nccl_log_segments.h"

namespace railyard::calibrate::nccl_log {

enum class Outcome { fact, torn, other };

class Builder {
 public:
  Builder(std::string source, const Options& options);

  // One physical line without its newline; complete = false if it was cut instead.
  void line(std::string_view text, bool complete);
  void overlong_line() { ++log_.counts.overlong; }
  sim::Result<Log> finish();

 private:
  // What is under way on one thread.
  struct Thread {
    std::size_t process = kNone;
    std::size_t rank = kNone;  // whose messages these are
    bool in_graph = false;     // the next lines may be the last graph's channels
    std::vector<std::pair<std::size_t, std::size_t>> system_stack;  // column, node
    std::string paths_from;                                         // "Paths from GPU/F000 :"
    std::vector<std::pair<Algorithm, Protocol>> columns;  // of the tuning table's current block
    std::size_t call_rank = kNone;                        // the last call
    Function call_function = Function::all_reduce;
    std::int64_t call_bytes = -1, call_ranks = -1;
    std::size_t call = kNone;  // into Log::calls
  };
  struct Message {
    const Segment& segment;
    Scanner text;
    Line line;
    Thread& thread;
  };
  using Handler = Outcome (Builder::*)(Message&);
  struct Kind {
    std::string_view start;
    Handler handler;
  };
  static const std::vector<Kind>& kinds();

  void unprefixed(std::string_view text, bool complete);
  void message(const Segment& segment);
  Outcome information(Message& message);
  Outcome indented(Message& message);

  // Attribution.
  Thread& thread_of(const Segment& segment);
  std::size_t new_rank(Message& message);
  std::size_t initialising_rank(Message& message);  // a new one after "Init COMPLETE"
  std::size_t any_rank(Message& message);
  std::size_t named_rank(Message& message, std::int64_t own_rank);
  void set_rank_number(std::size_t rank, std::int64_t number);
  void bind(Message& message, std::size_t rank);
  Process& process_of(Message& message) { return log_.processes[message.thread.process]; }

  // nccl_log_init.cpp
  Outcome communicator(Message& message);
  Outcome channel(Message& message);
  Outcome collnet(Message& message);
  Outcome edge(Message& message, Edge edge);
  Outcome ring_list(Message& message);
  Outcome ring_hop(Message& message);
  Outcome tree(Message& message);
  Outcome trees(Message& message);
  Outcome nvls(Message& message);
  Outcome mnnvl(Message& message);
  Outcome channel_counts(Message& message);
  Outcome thresholds(Message& message);
  Outcome chunk_size(Message& message);
  Outcome connected(Message& message);
  Outcome init_timings(Message& message);
  // nccl_log_graph.cpp
  Outcome graph(Message& message);
  Outcome graph_channel(Message& message);
  Outcome system(Message& message);
  Outcome system_root(Message& message);
  Outcome system_link(Message& message);
  Outcome paths_heading(Message& message);
  Outcome verbose_path(Message& message);
  Outcome path_row(Message& message);
  // nccl_log_process.cpp
  Outcome version(Message& message);
  Outcome driver(Message& message);
  Outcome variable(Message& message);
  Outcome network(Message& message);
  Outcome net(Message& message);
  void warning(const Segment& segment);
  bool find_version(std::string_view text, bool torn);
  void header_line(std::string_view text);
  // nccl_log_calls.cpp
  Outcome call_or_choice(Message& message, Function function);
  Outcome call(Message& message, Function function);
  Outcome choice(Message& message, std::optional<Function> function);
  static bool is_own_size(std::int64_t bytes, const Thread& thread);
  Outcome tuning_columns(Message& message);
  Outcome tuning_row(Message& message);
  // nccl_log_finish.cpp
  void group_ranks();
  std::size_t communicator_for(const Rank& rank);
  void gather_communicator(std::size_t index);
  void translate_graphs(const Communicator& communicator);

  struct PairHash {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& key) const {
      return std::hash<std::uint64_t>()(key.first * 0x9e3779b97f4a7c15U ^ key.second);
    }
  };
  template <typename Value>
  using PairMap = std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, Value, PairHash>;
  struct HeaderRank {  // nccl-tests: which rank is on which device
    std::int64_t rank = -1;
    std::string gpu;
  };

  Options options_;
  Log log_;
  Line line_ = 0;
  Segmenter segmenter_;
  std::unordered_map<std::string, std::uint64_t> hosts_;  // names to numbers
  PairMap<std::size_t> processes_;                        // (host, pid)
  PairMap<Thread> threads_;                               // (process, tid)
  PairMap<std::size_t> by_device_, by_comm_, by_rank_;    // (process, device | pointer | rank)
  std::unordered_map<std::string, HeaderRank> header_;    // "host:pid:device"
  // Facts printed by one rank for all, until communicators exist: parallel to log_.ranks.
  struct Shared {
    std::vector<Ring> rings;
    std::vector<NvlsHead> nvls_heads;
    std::optional<Tuning> tuning;
  };
  std::vector<Shared> shared_;
};

}  // namespace railyard::calibrate::nccl_log
