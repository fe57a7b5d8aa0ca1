#include "topologies/import/forwarding_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "topologies/import/text_lines.h"

namespace railyard::topologies {
namespace {

using sim::Result;

constexpr std::uint64_t kLastUnicastLid = 0xbfff;
constexpr std::uint64_t kNoPort = 255;
constexpr std::size_t kMaxNotes = 20;

// The GUID behind the word `guid`, as in "... switch Lid 2 guid 0x000b8cffff004939 (name):".
std::optional<std::uint64_t> guid_in(std::string_view line) {
  const std::size_t at = line.find(" guid ");
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + 6);
  return to_number(take_word(rest), 16);
}

bool starts_table(std::string_view line) {
  return line.starts_with("Unicast lids") || line.starts_with("dump_ucast_routes:");
}

// Lines that a table has beside its entries.
bool is_heading(std::string_view line) {
  for (const std::string_view known :
       {"Lid ", "Port ", "LID ", "Switch:", "Multicast mlids", "Dump"})
    if (line.starts_with(known)) return true;
  return line.find("lids dumped") != std::string_view::npos ||
         line.find("mlids dumped") != std::string_view::npos;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name, ForwardingTables& out)
      : lines_(text), name_(name), out_(out) {}

  Result<void> parse() {
    for (std::string_view line; lines_.next(line);) {
      line = trim(line);
      if (line.empty() || line.front() == '#') continue;
      RAILYARD_TRY(read(line));
    }
    RAILYARD_TRY(finish_table());
    if (tables_ == 0) return sim::bad_input("no forwarding table of a switch", name_);
    return {};
  }

 private:
  [[nodiscard]] sim::Error error(std::string message) const {
    return error_at(name_, lines_.number(), std::move(message));
  }

  Result<void> read(std::string_view line) {
    if (starts_table(line)) {
      RAILYARD_TRY(finish_table());
      return start(line);
    }
    if (line.starts_with("Multicast mlids")) multicast_ = true;
    if (is_heading(line)) return {};
    const bool digit = is_digit(line.front());
    if (digit && multicast_) return {};
    if (digit) return read_entry(line);
    if (out_.notes.size() < kMaxNotes)
      out_.notes.push_back(
          fmt::format("{}:{}: '{}' is ignored", name_, lines_.number(), excerpt(line)));
    return {};
  }

  Result<void> start(std::string_view line) {
    std::optional<std::uint64_t> guid = guid_in(line);
    if (line.starts_with("dump_ucast_routes:")) {
      std::string_view rest = line.substr(18);
      if (take_word(rest) == "Switch") guid = to_number(take_word(rest), 16);
    }
    if (!guid) return error(fmt::format("no GUID of a switch in '{}'", excerpt(line, 80)));
    current_ = SwitchTable{};
    current_.guid = *guid;
    current_.line = lines_.number();
    const std::size_t open = line.find('(');
    const std::size_t close = line.rfind(')');
    if (open != std::string_view::npos && close != std::string_view::npos && open < close)
      current_.name = excerpt(line.substr(open + 1, close - open - 1), 80);
    inside_ = true;
    multicast_ = false;
    ++tables_;
    return {};
  }

  // "0x0005 034 : (...)", "0x0005 034 # ...", "0x0001 : 001  : 01   : yes", "0x0006 : UNREACHABLE".
  Result<void> read_entry(std::string_view line) {
    if (!inside_) return error("an entry outside the table of a switch");
    std::string_view rest = line;
    const auto lid = to_number(take_word(rest), 16);
    std::string_view word = take_word(rest);
    if (word == ":") word = take_word(rest);
    if (!lid || *lid > kLastUnicastLid)
      return error(fmt::format("no unicast LID (0x0001 to 0xbfff) in '{}'", excerpt(line)));
    if (word.starts_with("UNREACHABLE")) {
      ++out_.unreachable;
      return {};
    }
    const auto port = to_number(word);
    if (!port || *port > kNoPort)
      return error(fmt::format("'{}' is no port (0 to 254)", excerpt(word, 20)));
    if (*port == kNoPort) {
      ++out_.unreachable;
      return {};
    }
    note_paths(rest);
    current_.entries.push_back(
        {static_cast<std::uint16_t>(*lid), static_cast<std::uint8_t>(*port)});
    return {};
  }

  // "(path #2 out of 4: portguid 0x...)": a further LID of a port.
  void note_paths(std::string_view comment) {
    const std::size_t path = comment.find("(path #");
    const std::size_t of = comment.find(" out of ", path == std::string_view::npos ? 0 : path);
    if (path == std::string_view::npos || of == std::string_view::npos) return;
    const std::string_view rest = comment.substr(of + 8);
    const auto lids = to_number(rest.substr(0, rest.find(':')));
    constexpr std::uint64_t kMost = 128;  // LMC 7
    if (lids && *lids <= kMost)
      out_.lids_per_port = std::max<std::size_t>(out_.lids_per_port, *lids);
  }

  Result<void> finish_table() {
    if (!std::exchange(inside_, false)) return {};
    auto& entries = current_.entries;
    std::stable_sort(
        entries.begin(), entries.end(),
        [](const ForwardingEntry& a, const ForwardingEntry& b) { return a.lid < b.lid; });
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
    const auto twice = std::adjacent_find(
        entries.begin(), entries.end(),
        [](const ForwardingEntry& a, const ForwardingEntry& b) { return a.lid == b.lid; });
    if (twice != entries.end())
      return error_at(name_, current_.line,
                      fmt::format("switch 0x{:016x}: LID {} leaves by port {} and by port {}",
                                  current_.guid, twice->lid, twice->port, (twice + 1)->port));
    return keep();
  }

  Result<void> keep() {
    const auto [at, fresh] = out_.index.emplace(current_.guid, out_.switches.size());
    if (fresh) {
      out_.switches.push_back(std::move(current_));
      return {};
    }
    if (out_.switches[at->second].entries != current_.entries)
      return error_at(
          name_, current_.line,
          fmt::format("a second table of switch 0x{:016x}, which differs", current_.guid));
    return {};
  }

  LineReader lines_;
  const std::string& name_;
  ForwardingTables& out_;
  SwitchTable current_;
  bool inside_ = false;
  bool multicast_ = false;
  std::size_t tables_ = 0;
};

}  // namespace

std::optional<std::uint8_t> SwitchTable::port(std::uint16_t lid) const {
  const auto at = std::lower_bound(
      entries.begin(), entries.end(), lid,
      [](const ForwardingEntry& entry, std::uint16_t wanted) { return entry.lid < wanted; });
  if (at == entries.end() || at->lid != lid) return std::nullopt;
  return at->port;
}

const SwitchTable* ForwardingTables::find(std::uint64_t guid) const {
  const auto at = index.find(guid);
  return at == index.end() ? nullptr : &switches[at->second];
}

bool looks_like_forwarding_tables(std::string_view text) {
  LineReader lines(text);
  for (std::string_view line; lines.next(line);)
    if (starts_table(trim(line))) return true;
  return false;
}

Result<void> parse_forwarding_tables(std::string_view text, const std::string& name,
                                     ForwardingTables& out) {
  return Parser(text, name, out).parse();
}

std::string summary(const ForwardingTables& tables) {
  std::size_t entries = 0;
  for (const SwitchTable& table : tables.switches) entries += table.entries.size();
  return fmt::format(
      "forwarding tables: {} switches, {} entries{}{}", tables.switches.size(), entries,
      tables.unreachable > 0 ? fmt::format(", {} unreachable", tables.unreachable) : "",
      tables.lids_per_port > 1
          ? fmt::format("; up to {} LIDs a port, routes go by the first", tables.lids_per_port)
          : "");
}

}  // namespace railyard::topologies
