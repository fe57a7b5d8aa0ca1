#include "tools/cli/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace railyard::cli {
namespace {

using scenarios::KeptMessage;
using scenarios::RunResult;
using sim::Span;
using sim::Time;

constexpr std::uint32_t kThreadsPerTrack = 64;  // threads that overlapping events may take
constexpr std::uint32_t kTransferTrack = 1023;
constexpr std::uint32_t kFirstMessageTrack = 1024;  // tracks below are streams

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds with all six decimals of a picosecond, and no rounding.
std::string us(std::int64_t picoseconds) {
  return fmt::format("{}.{:06}", picoseconds / 1'000'000, picoseconds % 1'000'000);
}

struct Event {
  Time start{};
  Time end{};
  std::string_view name;
  std::string_view category;
  std::string args;  // JSON, or empty
};

// Events that belong together, on as few threads as keep them from overlapping.
struct Track {
  std::string name;
  std::vector<Event> events;
};

class Writer {
 public:
  void process(std::uint32_t rank) {
    metadata("process_name", rank, 0, json_text(fmt::format("rank {}", rank)));
    add(fmt::format(
        R"({{"name":"process_sort_index","ph":"M","pid":{},"args":{{"sort_index":{}}}}})", rank,
        rank));
  }

  void track(std::uint32_t rank, std::uint32_t number, Track& track) {
    auto& events = track.events;
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.start, b.end, a.name) < std::tie(b.start, a.end, b.name);
    });
    std::vector<std::vector<Time>> open;  // per thread, the ends of the events around `start`
    for (const Event& event : events) {
      const std::uint32_t thread = place(event, open);
      const std::uint32_t id = number * kThreadsPerTrack + thread;
      if (thread >= named_) name_thread(rank, id, thread, track.name);
      add(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","pid":{},"tid":{},"ts":{},"dur":{}{}}})",
                      json_text(event.name), event.category, rank, id,
                      us(event.start.time_since_epoch().count()),
                      us((event.end - event.start).count()),
                      event.args.empty() ? "" : ",\"args\":" + event.args));
    }
    named_ = 0;
  }

  std::string finish() && {
    return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" + std::move(text_) + "\n]}\n";
  }

 private:
  // The first thread on which the event overlaps nothing, or lies within what is open.
  static std::uint32_t place(const Event& event, std::vector<std::vector<Time>>& open) {
    for (std::uint32_t thread = 0; thread < open.size(); ++thread) {
      auto& ends = open[thread];
      while (!ends.empty() && ends.back() <= event.start) ends.pop_back();
      const bool last = thread + 1 == kThreadsPerTrack;
      if (!ends.empty() && ends.back() < event.end && !last) continue;
      ends.push_back(event.end);
      return thread;
    }
    open.push_back({event.end});
    return static_cast<std::uint32_t>(open.size() - 1);
  }

  void name_thread(std::uint32_t rank, std::uint32_t id, std::uint32_t thread,
                   const std::string& name) {
    metadata("thread_name", rank, id,
             json_text(thread == 0 ? name : fmt::format("{} ({})", name, thread + 1)));
    add(fmt::format(
        R"({{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
        rank, id, id));
    named_ = thread + 1;
  }

  void metadata(std::string_view what, std::uint32_t rank, std::uint32_t thread,
                const std::string& value) {
    add(fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", what,
                    rank, thread, value));
  }

  void add(std::string_view event) {
    if (!text_.empty()) text_ += ",\n";
    text_ += event;
  }

  std::string text_;
  std::uint32_t named_ = 0;  // threads of the present track that have their name
};

std::string_view category(sim::SpanKind kind) {
  switch (kind) {
    case sim::SpanKind::kernel: return "kernel";
    case sim::SpanKind::collective: return "collective";
    case sim::SpanKind::host: return "host";
  }
  return "?";
}

using Tracks = std::map<std::pair<std::uint32_t, std::uint32_t>, Track>;  // by rank and number

void add_spans(const RunResult& result, std::uint32_t ranks, Tracks& tracks) {
  for (const Span& span : result.spans) {
    if (span.rank >= ranks) continue;
    Track& track = tracks[{span.rank, span.stream}];
    if (track.name.empty())
      track.name = span.stream < result.stream_names.size() ? result.stream_names[span.stream]
                                                            : fmt::format("stream {}", span.stream);
    const std::string_view name =
        span.name < result.span_names.size() ? result.span_names[span.name] : std::string_view("?");
    track.events.push_back({span.start, span.end, name, category(span.kind), {}});
  }
}

std::string call_args(sim::Algorithm algorithm, sim::Protocol protocol, std::uint32_t channels,
                      sim::Bytes size) {
  return fmt::format(R"({{"algorithm":"{}","protocol":"{}","channels":{},"bytes":{}}})",
                     sim::to_text(algorithm), sim::to_text(protocol), channels, size.raw());
}

// What is known of the buckets of all iterations, in the order in which a rank reduces them.
// Algorithm, protocol and channels are those of the steady iteration's bucket of that size.
std::vector<std::string> bucket_args(const scenarios::DdpResult& ddp) {
  std::vector<std::string> args;
  for (std::size_t i = 0; i < ddp.bucket_bytes.size(); ++i)
    for (std::size_t b = 0; b < ddp.bucket_bytes[i].size(); ++b) {
      const sim::Bytes size = ddp.bucket_bytes[i][b];
      std::string text =
          fmt::format(R"({{"iteration":{},"bucket":{},"bytes":{})", i + 1, b, size.raw());
      const auto row = std::find_if(ddp.buckets.begin(), ddp.buckets.end(),
                                    [&](const auto& bucket) { return bucket.size == size; });
      if (row != ddp.buckets.end())
        text +=
            fmt::format(R"(,"algorithm":"{}","protocol":"{}","channels":{})",
                        sim::to_text(row->algorithm), sim::to_text(row->protocol), row->channels);
      args.push_back(text + "}");
    }
  return args;
}

// Gives the gradient reductions of every rank what is known of them, where their number fits.
void describe_buckets(const scenarios::DdpResult& ddp, Tracks& tracks) {
  const std::vector<std::string> args = bucket_args(ddp);
  for (auto& entry : tracks) {
    std::vector<Event*> calls;
    for (Event& event : entry.second.events)
      if (event.category == "collective" && event.name.starts_with("AllReduce"))
        calls.push_back(&event);
    if (calls.size() != args.size()) continue;
    std::sort(calls.begin(), calls.end(),
              [](const Event* a, const Event* b) { return a->start < b->start; });
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i]->args = args[i];
  }
}

// Gives the spans of a sweep what is known of their calls: spans of one label are of equal calls.
void describe_calls(const RunResult& result, Tracks& tracks) {
  std::map<std::string_view, std::string> args;
  for (const scenarios::CollectiveRow& row : result.collectives)
    args[row.label] = call_args(row.algorithm, row.protocol, row.channels, row.size);
  for (auto& entry : tracks)
    for (Event& event : entry.second.events)
      if (const auto found = args.find(event.name); found != args.end()) event.args = found->second;
}

// A sweep of collectives without spans of its own: one after the other, on every rank.
void add_calls(const RunResult& result, std::uint32_t ranks, Tracks& tracks) {
  Time at{};
  for (const scenarios::CollectiveRow& row : result.collectives) {
    const Time end = at + row.time;
    for (std::uint32_t rank = 0; rank < std::min<std::size_t>(ranks, result.ranks); ++rank) {
      Track& track = tracks[{rank, 0}];
      track.name = "collectives";
      track.events.push_back({at, end, sim::to_text(row.collective), "collective",
                              call_args(row.algorithm, row.protocol, row.channels, row.size)});
    }
    at = end;
  }
}

// Independent transfers, on a thread of their sender.
void add_flows(const RunResult& result, std::uint32_t ranks, Tracks& tracks) {
  for (const scenarios::FlowResult& flow : result.flows) {
    if (flow.from >= ranks) continue;
    Track& track = tracks[{flow.from, kTransferTrack}];
    track.name = "transfers";
    track.events.push_back({Time(flow.start), Time(flow.end), "transfer", "flow",
                            fmt::format(R"({{"to":{},"bytes":{}}})", flow.to, flow.size.raw())});
  }
}

void add_messages(const RunResult& result, std::uint32_t ranks, Tracks& tracks) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
  for (const KeptMessage& message : result.kept_messages)
    if (message.from < ranks) numbers[{message.from, message.to, message.channel}] = 0;
  std::uint32_t number = kFirstMessageTrack;
  for (auto& entry : numbers) entry.second = number++;
  for (const KeptMessage& message : result.kept_messages) {
    if (message.from >= ranks) continue;
    Track& track = tracks[{message.from, numbers[{message.from, message.to, message.channel}]}];
    if (track.name.empty())
      track.name = fmt::format("to rank {}, channel {}", message.to, message.channel);
    track.events.push_back({message.start, message.arrival, message.name, "message",
                            fmt::format(R"({{"bytes":{},"to":{},"channel":{}}})",
                                        message.size.raw(), message.to, message.channel)});
  }
}

}  // namespace

std::string timeline_json(const RunResult& result, std::uint32_t ranks) {
  Tracks tracks;
  add_spans(result, ranks, tracks);
  if (result.ddp) describe_buckets(*result.ddp, tracks);
  describe_calls(result, tracks);
  if (result.spans.empty() && result.kept_messages.empty()) add_calls(result, ranks, tracks);
  add_flows(result, ranks, tracks);
  add_messages(result, ranks, tracks);
  Writer writer;
  std::optional<std::uint32_t> process;
  for (auto& [place, track] : tracks) {
    if (process != place.first) writer.process(place.first);
    process = place.first;
    writer.track(place.first, place.second, track);
  }
  return std::move(writer).finish();
}

}  // namespace railyard::cli
