// check_tables(): every destination is walked to from every switch that has hosts. What is known
// of a switch for one destination is kept, so that each switch is looked at once.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "topologies/import/text_lines.h"
#include "topologies/imported_fabric.h"

namespace railyard::topologies {
namespace {

using sim::bad_input;
using sim::Result;

enum class State : std::uint8_t { unknown, on_the_way, arrives, silent };

class Walker {
 public:
  explicit Walker(const ImportedFabric& fabric) : f_(fabric), state_(fabric.switches.size()) {
    for (std::uint32_t e = 0; e < f_.endpoints(); ++e)
      starts_.emplace_back(f_.cables[e].b, static_cast<std::uint32_t>(e % f_.rails));
    std::sort(starts_.begin(), starts_.end());
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
  }

  Result<void> run() {
    for (std::uint32_t to = 0; to < f_.endpoints(); ++to) {
      if (f_.lids[to] == 0)
        return bad_input(
            fmt::format("no LID of {} is told, by which tables could be walked", endpoint(to)));
      std::fill(state_.begin(), state_.end(), State::unknown);
      for (const Start& start : starts_) RAILYARD_TRY(walk(start, to));
    }
    return {};
  }

 private:
  using Start = std::pair<std::uint32_t, std::uint32_t>;  // a switch and the rail of a NIC there

  [[nodiscard]] std::string endpoint(std::uint32_t e) const {
    return fmt::format("{} NIC {}", excerpt(f_.hosts[e / f_.rails], 60), e % f_.rails);
  }
  [[nodiscard]] std::string destination(std::uint32_t to) const {
    return fmt::format("LID {} ({})", f_.lids[to], endpoint(to));
  }

  Result<void> walk(const Start& start, std::uint32_t to) {
    const bool needed = start.second == to % f_.rails;
    std::uint32_t at = start.first;
    way_.clear();
    State end = State::unknown;
    while (end == State::unknown) {
      if (state_[at] == State::on_the_way) return circle(at, to);
      if (state_[at] != State::unknown) {
        end = state_[at];
        break;
      }
      state_[at] = State::on_the_way;
      way_.push_back(at);
      const std::uint32_t cable = f_.next_cable(at, f_.lids[to]);
      if (cable == kNoCable) {
        if (speaks(at, to) || needed) return dead_end(at, to);
        end = State::silent;
      } else if (cable < f_.endpoints()) {
        if (cable != to) return dead_end(at, to);
        end = State::arrives;
      } else {
        at = f_.across(cable, at);
      }
    }
    for (const std::uint32_t passed : way_) state_[passed] = end;
    if (end == State::silent && needed) return dead_end(silent_end(start.first, to), to);
    return {};
  }

  // Where a way that was found silent before stops.
  [[nodiscard]] std::uint32_t silent_end(std::uint32_t at, std::uint32_t to) const {
    for (std::uint32_t cable = f_.next_cable(at, f_.lids[to]); cable != kNoCable;
         cable = f_.next_cable(at, f_.lids[to]))
      at = f_.across(cable, at);
    return at;
  }

  [[nodiscard]] bool speaks(std::uint32_t at, std::uint32_t to) const {
    const SwitchTable* table = f_.switches[at].table;
    return table != nullptr && table->port(f_.lids[to]).has_value();
  }

  [[nodiscard]] sim::Error dead_end(std::uint32_t at, std::uint32_t to) const {
    const ImportedSwitch& where = f_.switches[at];
    const std::string who = fmt::format("switch {} (0x{:016x})", where.name, where.guid);
    if (where.table == nullptr)
      return bad_input(
          fmt::format("there is no forwarding table of {}, which {} passes", who, destination(to)));
    const auto port = where.table->port(f_.lids[to]);
    if (!port) return bad_input(fmt::format("{} has no entry for {}", who, destination(to)));
    const bool host = f_.next_cable(at, f_.lids[to]) != kNoCable;
    return bad_input(fmt::format("{} sends {} out of port {}, {}", who, destination(to), *port,
                                 host         ? "to another host"
                                 : *port == 0 ? "to itself"
                                              : "where no cable of this cluster is"));
  }

  [[nodiscard]] sim::Error circle(std::uint32_t at, std::uint32_t to) const {
    std::vector<std::string> names;
    for (auto passed = std::find(way_.begin(), way_.end(), at); passed != way_.end(); ++passed)
      names.push_back(f_.switches[*passed].name);
    names.push_back(f_.switches[at].name);
    return bad_input(
        fmt::format("the tables send {} in a circle: {}", destination(to), list_of(names, 8)));
  }

  const ImportedFabric& f_;
  std::vector<Start> starts_;
  std::vector<State> state_;  // by switch, for one destination
  std::vector<std::uint32_t> way_;
};

}  // namespace

Result<void> check_tables(const ImportedFabric& fabric) { return Walker(fabric).run(); }

}  // namespace railyard::topologies
