// NCCL_DEBUG=INFO logs: what NCCL itself said it found, chose and ran.
//
// Read in one pass over text of any size, from NCCL 2.10 to 2.30 (RCCL's lines where they agree).
// A log is the interleaved output of many threads, so that
// * any prefix is accepted before "host:pid:tid [dev] NCCL INFO" (timestamps, mpirun's tags, ANSI);
// * several messages on one physical line are taken apart (Counts::joined);
// * a message of a known kind that breaks off is dropped, never completed by guess (Counts::torn):
//   a number is believed only when something that is not a digit or letter follows it.
// Every fact keeps its line (1-based, 0 = the log does not say), -1 stands for an unknown number.
//
// Who said it: a message belongs to the communicator that its thread was last initialising, else
// to the one last seen on its device, else its own words (comm pointer, rank) decide. Communicators
// are told apart by commId; where a log has none (before 2.18), by size and order of appearance
// (Communicator::id_known is false), which two equal groups initialised at once can confuse.
//
// Units: bandwidths GB/s (1e9 B/s), latencies microseconds, as NCCL prints them.
// Cost: time O(bytes), memory O(facts); calls and choices beyond Options::max_calls are counted,
// not kept. Formats: NCCL's messages, as listed in the tests beside this reader.
//
//   RAILYARD_ASSIGN(const nccl_log::Log log, nccl_log::read_file("job.log"));
//   for (const nccl_log::Ring& ring : log.communicators[0].rings) ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/nccl_log_facts.h"
#include "sim/result.h"

namespace railyard::calibrate::nccl_log {

struct Warning {
  std::string where;  // "transport/net_ib.cc:99"
  std::string text;
  std::string host;
  std::int64_t pid = -1;
  Line line = 0;
};

struct Counts {
  std::uint64_t lines = 0;               // physical
  std::uint64_t messages = 0;            // with NCCL's prefix
  std::uint64_t facts = 0;               // of these, understood and kept
  std::uint64_t torn = 0;                // of a known kind, broken off, dropped
  std::uint64_t joined = 0;              // messages that began inside another's line
  std::uint64_t overlong = 0;            // physical lines cut at 1 MiB
  std::uint64_t calls = 0, choices = 0;  // seen; the vectors hold the first max_calls of each
};

struct Log {
  std::string source;
  std::vector<Version> versions;  // distinct texts
  std::vector<Process> processes;
  std::vector<Rank> ranks;
  std::vector<Communicator> communicators;
  std::vector<Call> calls;
  std::vector<Choice> choices;
  std::vector<Warning> warnings;
  Counts counts;
};

struct Options {
  std::size_t max_calls = 1'000'000;
};

// Errors: the file cannot be read; no message of NCCL's in it.
sim::Result<Log> read_file(const std::string& path, const Options& options = {});
sim::Result<Log> read_text(std::string_view text, const std::string& source,
                           const Options& options = {});

}  // namespace railyard::calibrate::nccl_log
