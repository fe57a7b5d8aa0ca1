#include <array>

#include "calibrate/readers/nccl_log_builder.h"
#include "sim/enum_table.h"

namespace railyard::calibrate::nccl_log {
namespace {

// Bytes of NCCL's data types by number: i8 u8 i32 u32 i64 u64 f16 f32 f64 bf16 e4m3 e5m2.
constexpr std::array<std::int64_t, 12> kElementBytes{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

bool same_name(std::string_view a, std::string_view b) {  // "CollNetDirect", "COLLNET_DIRECT"
  std::string plain_a, plain_b;
  for (const char c : a)
    if (c != '_') plain_a += c;
  for (const char c : b)
    if (c != '_') plain_b += c;
  return sim::equal_ignoring_case(plain_a, plain_b);
}

template <typename E>
std::optional<E> named(std::string_view name) {
  for (const auto& entry : sim::EnumTable<E>::entries)
    if (same_name(entry.name, name)) return entry.value;
  return std::nullopt;
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  if (name == "CollNet") return Algorithm::collnet_direct;  // before it was split in two
  return named<Algorithm>(name);
}

std::optional<Protocol> protocol_named(std::string_view name) {
  const auto protocol = named<Protocol>(name);
  return protocol == Protocol::plain ? std::nullopt : protocol;  // not NCCL's
}

// A choice prints names, before 2.25 numbers.
template <typename E>
std::optional<E> numbered(std::string_view text, std::size_t count) {
  if (text.size() != 1 || text[0] < '0') return std::nullopt;
  const auto index = static_cast<std::size_t>(text[0] - '0');
  return index < count ? std::optional(static_cast<E>(index)) : std::nullopt;
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The cells between '|', without the first; an unfinished last cell is left out.
std::vector<std::string_view> cells_of(std::string_view text) {
  std::vector<std::string_view> cells;
  std::size_t begin = text.find('|');
  while (begin != std::string_view::npos) {
    const std::size_t end = text.find('|', begin + 1);
    if (end == std::string_view::npos) break;
    cells.push_back(trim(text.substr(begin + 1, end - begin - 1)));
    begin = end;
  }
  return cells;
}

}  // namespace

// Messages that begin with a function's name; the tuning table's longest one has no blank before.
Outcome Builder::call_or_choice(Message& message, Function function) {
  if (message.text.rest().find(" |") != std::string_view::npos) return tuning_row(message);
  if (message.text.rest().find(" Bytes -> ") != std::string_view::npos)
    return choice(message, function);
  if (message.text.rest().find(": opCount ") != std::string_view::npos)
    return call(message, function);
  return Outcome::other;
}

// "AllReduce: opCount 0 sendbuff P recvbuff P count N datatype 7 op 0 root 0 comm P [nranks=16]
// stream P". Send and Recv print the peer as root.
Outcome Builder::call(Message& message, Function function) {
  Scanner& text = message.text;
  Hex op_count, comm;
  std::string_view name, send, receive;
  Call call{.function = function, .line = message.line};
  if (!text.match("%: opCount % sendbuff % recvbuff % count % datatype % op % root % comm %", name,
                  op_count, send, receive, call.count, call.datatype, call.op, call.root, comm))
    return Outcome::torn;
  std::int64_t ranks = -1;
  if (!text.match(" [nranks=%]", ranks)) return Outcome::torn;
  call.op_count = op_count.value;

  const std::pair<std::uint64_t, std::uint64_t> key{message.thread.process, comm.value};
  const auto known = by_comm_.find(key);
  if (known != by_comm_.end()) {
    call.rank = known->second;
  } else {
    // The log began after the communicator was made, or does not show that.
    call.rank = any_rank(message);
    if (log_.ranks[call.rank].comm != 0) call.rank = new_rank(message);
    log_.ranks[call.rank].comm = comm.value;
    log_.ranks[call.rank].rank_count = ranks;
    by_comm_[key] = call.rank;
  }
  Thread& thread = message.thread;
  thread.call_rank = call.rank;
  thread.call_function = function;
  thread.call_ranks = ranks;
  const bool known_type =
      call.datatype >= 0 && call.datatype < static_cast<std::int64_t>(kElementBytes.size());
  thread.call_bytes = -1;
  if (known_type) {
    const std::int64_t size = kElementBytes[static_cast<std::size_t>(call.datatype)];
    if (call.count >= 0 && call.count <= INT64_MAX / size) thread.call_bytes = call.count * size;
  }
  ++log_.counts.calls;
  thread.call = kNone;
  if (log_.calls.size() < options_.max_calls) {
    thread.call = log_.calls.size();
    log_.calls.push_back(call);
  }
  return Outcome::fact;
}

// Whether a choice of that many bytes is about the thread's last call. Older versions multiply
// AllGather's and ReduceScatter's by the ranks.
bool Builder::is_own_size(std::int64_t bytes, const Thread& thread) {
  if (thread.call_rank == kNone || thread.call_bytes < 0) return false;
  if (bytes == thread.call_bytes) return true;
  const bool multiplied = thread.call_function == Function::all_gather ||
                          thread.call_function == Function::reduce_scatter;
  return multiplied && thread.call_bytes > 0 && bytes % thread.call_bytes == 0 &&
         bytes / thread.call_bytes == thread.call_ranks;
}

// "N Bytes -> Algo A proto P time T", "F: N Bytes -> Algo A proto P channel{Lo..Hi}={a..b}",
// "F [Symmetric]: N Bytes -> Kernel K nchannels c ...", "F [Copy Engine]: N Bytes -> ...".
Outcome Builder::choice(Message& message, std::optional<Function> function) {
  Scanner& text = message.text;
  const Thread& thread = message.thread;
  Choice choice{.function = function, .rank = thread.call_rank, .line = message.line};
  if (function) {
    const std::size_t colon = text.rest().find(": ");
    if (colon == std::string_view::npos) return Outcome::other;
    text = Scanner(text.rest().substr(colon + 2), text.torn());
  }
  text.skip_blanks();
  if (!text.match("% Bytes -> ", choice.bytes)) return Outcome::torn;
  std::string_view algorithm, protocol, kernel;
  std::int64_t channels = 0;
  if (text.match("Algo % proto % ", algorithm, protocol)) {
    choice.algorithm = numbered<Algorithm>(algorithm, kAlgorithms);
    choice.protocol = numbered<Protocol>(protocol, kProtocols);
    if (!choice.algorithm) choice.algorithm = algorithm_named(algorithm);
    if (!choice.protocol) choice.protocol = protocol_named(protocol);
    if (!choice.algorithm || !choice.protocol) return Outcome::torn;
    if (!text.match("time %", choice.time) &&
        !text.match("channel{Lo..Hi}={%..%}", choice.first_channel, choice.last_channel))
      return Outcome::torn;
  } else if (text.match("Kernel % nchannels %", kernel, channels)) {
    choice.kernel = std::string(kernel);
    choice.first_channel = 0;
    choice.last_channel = channels - 1;
  } else {
    if (text.torn() || text.done() || text.starts("Algo ") || text.starts("Kernel "))
      return Outcome::torn;
    choice.kernel = std::string(text.rest());
  }
  const bool last_call = is_own_size(choice.bytes, thread);
  if (!choice.function && last_call) choice.function = thread.call_function;
  if (last_call && choice.function == thread.call_function) choice.call = thread.call;
  if (choice.rank == kNone) choice.rank = any_rank(message);
  ++log_.counts.choices;
  if (log_.choices.size() < options_.max_calls) log_.choices.push_back(std::move(choice));
  return Outcome::fact;
}

// "  Algorithm   |  Tree  |  Ring  | ..." (three protocols each), and in older logs
// "Latency/AlgBw |  Tree/    LL |  Tree/ LL128 | ...".
Outcome Builder::tuning_columns(Message& message) {
  std::vector<std::pair<Algorithm, Protocol>> columns;
  for (const std::string_view cell : cells_of(message.text.rest())) {
    const std::size_t slash = cell.find('/');
    const auto algorithm = algorithm_named(trim(cell.substr(0, slash)));
    if (!algorithm) return Outcome::torn;
    if (slash == std::string_view::npos) {
      for (const Protocol protocol : algorithms::nccl::kAllProtocols)
        columns.emplace_back(*algorithm, protocol);
      continue;
    }
    const auto protocol = protocol_named(trim(cell.substr(slash + 1)));
    if (!protocol) return Outcome::torn;
    columns.emplace_back(*algorithm, *protocol);
  }
  if (columns.empty()) return Outcome::torn;
  std::optional<Tuning>& tuning = shared_[any_rank(message)].tuning;
  if (!tuning) tuning.emplace(Tuning{.line = message.line});
  message.thread.columns = std::move(columns);
  return Outcome::fact;
}

Outcome Builder::tuning_row(Message& message) {
  const std::string_view text = message.text.rest();
  const std::string_view heading = trim(text.substr(0, text.find('|')));
  const auto& columns = message.thread.columns;
  if (columns.empty() || heading == "Protocol") return Outcome::other;
  std::optional<Tuning>& tuning = shared_[any_rank(message)].tuning;
  if (!tuning) return Outcome::other;
  const bool threads = heading == "Max NThreads";
  const auto function = named<Function>(heading);
  if (!threads && (!function || static_cast<std::size_t>(*function) >= kTunedFunctions))
    return Outcome::other;
  const std::vector<std::string_view> cells = cells_of(text);
  if (cells.size() < columns.size()) return Outcome::torn;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto algorithm = static_cast<std::size_t>(columns[i].first);
    const auto protocol = static_cast<std::size_t>(columns[i].second);
    Scanner cell(cells[i], false);
    if (threads) {
      std::int64_t count = 0;
      if (!cell.match("%", count)) return Outcome::torn;
      tuning->max_threads[algorithm][protocol] = count;
      continue;
    }
    TuningCell entry;
    if (!cell.match("%/", entry.latency)) return Outcome::torn;
    cell.skip_blanks();
    if (!cell.match("%", entry.bandwidth)) return Outcome::torn;
    tuning->cells[static_cast<std::size_t>(*function)][algorithm][protocol] = entry;
  }
  return Outcome::fact;
}

}  // namespace railyard::calibrate::nccl_log
