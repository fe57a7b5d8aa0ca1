// One physical line of a log, taken apart into NCCL's messages.
//
// A message begins at "host:pid:tid [dev] NCCL INFO" wherever on the line it stands; WARN has
// "file.cc:line" before NCCL, CALL has no [dev]. A message that another one interrupts is torn.
// Text can run into a host name ("sumnode00:1:1"). A name is cut to a host that ends it, if that
// host is known with the same pid, or if the name stands where no message should begin; a host is
// known once its name stood where one should, or from the header that nccl-tests prints
// ("# Rank 0 ... on node00 device 0").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace railyard::calibrate::nccl_log {

enum class Level { info, warn, call, other };

struct Segment {
  Level level = Level::info;
  std::string_view host;
  std::int64_t pid = -1, tid = -1;
  std::int64_t device = -1;
  std::string_view where;  // WARN: "file.cc:line"
  std::string_view text;   // after "NCCL INFO "; leading blanks mean something
  bool torn = false;
};

class Segmenter {
 public:
  // The views live as long as `line` and this object. complete = false: the line has no end.
  const std::vector<Segment>& split(std::string_view line, bool complete);

  // What stood before the first message, or the whole line.
  [[nodiscard]] std::string_view before() const { return before_; }

  void know_host(std::string_view host) { hosts_.emplace(host); }

 private:
  struct Found {
    Segment segment;
    std::size_t begin = 0;  // of the prefix
    std::size_t text = 0;
  };
  std::optional<Found> prefix_at(std::string_view line, std::size_t nccl);
  std::string_view host_name(std::string_view line, std::string_view token, std::int64_t pid);

  std::unordered_set<std::string> hosts_;
  std::unordered_map<std::int64_t, std::vector<std::string>> hosts_of_pid_;
  std::vector<Segment> segments_;
  std::string_view before_;
  std::string clean_;  // the line without ANSI sequences
};

}  // namespace railyard::calibrate::nccl_log
