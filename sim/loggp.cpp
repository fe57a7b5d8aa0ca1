#include "sim/loggp.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "sim/check.h"

namespace railyard::sim {
namespace {

struct Message {
  std::uint32_t from = 0;
  std::int64_t bytes = 1;
};

// arrival: of the first byte; delivery: the whole message is there.
enum class EventKind : std::uint8_t { round, send, arrival, delivery, receive };

struct Event {
  std::int64_t time = 0;
  std::uint64_t sequence = 0;
  EventKind kind = EventKind::round;
  std::uint32_t host = 0;
  std::uint32_t peer = 0;  // arrival, delivery, receive: the sender
  std::int64_t bytes = 0;
  bool operator<(const Event& other) const {
    return time != other.time ? time > other.time : sequence > other.sequence;
  }
};

struct Host {
  std::uint32_t round = 0;
  std::uint32_t open = 0;  // operations of this round that are not done
  std::int64_t done = 0;   // end of the last operation
  std::int64_t cpu_free = 0, send_free = 0, receive_free = 0;
  std::vector<std::uint32_t> posted;  // senders that are awaited, in order
  std::vector<Message> delivered;     // not awaited yet, in order
};

class LogGPRun {
 public:
  LogGPRun(const LogGP& parameters, std::uint32_t hosts, const HostProgram& program)
      : p_(parameters), program_(program), hosts_(hosts) {}

  std::vector<std::int64_t> run() {
    for (std::uint32_t host = 0; host < hosts_.size(); ++host) begin_round(host, 0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
    }
    std::vector<std::int64_t> done;
    for (const Host& host : hosts_) {
      RAILYARD_CHECK(host.open == 0 && host.delivered.empty(), "every message has its receive");
      done.push_back(host.done);
    }
    return done;
  }

 private:
  void push(Event event) {
    event.sequence = next_sequence_++;
    events_.push(event);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case EventKind::round: return begin_round(event.host, event.time);
      case EventKind::send: return try_send(event);
      case EventKind::arrival: return arrive(event);
      case EventKind::delivery: return deliver(event);
      case EventKind::receive: return try_receive(event);
    }
  }

  void begin_round(std::uint32_t index, std::int64_t now) {
    Host& host = hosts_[index];
    ops_.clear();
    if (!program_(index, host.round++, ops_)) return;
    host.open = static_cast<std::uint32_t>(ops_.size());
    if (ops_.empty()) return push({now, 0, EventKind::round, index});
    for (const HostOp& op : ops_) {
      if (op.is_send)
        push({now, 0, EventKind::send, index, op.peer, op.bytes});
      else
        post(index, op.peer, now);
    }
  }

  void post(std::uint32_t index, std::uint32_t sender, std::int64_t now) {
    Host& host = hosts_[index];
    const auto known = std::ranges::find(host.delivered, sender, &Message::from);
    if (known == host.delivered.end()) return host.posted.push_back(sender);
    push({now, 0, EventKind::receive, index, sender, known->bytes});
    host.delivered.erase(known);
  }

  void try_send(const Event& event) {
    Host& host = hosts_[event.host];
    const std::int64_t start = std::max({event.time, host.cpu_free, host.send_free});
    if (start > event.time) return retry(event, start);
    const std::int64_t rest = event.bytes - 1;
    host.cpu_free = start + p_.o + rest * p_.O;
    host.send_free = start + p_.g + rest * p_.G;
    push({start + p_.o + p_.L, 0, EventKind::arrival, event.peer, event.host, event.bytes});
    if (event.bytes <= p_.S) finish_op(event.host, host.cpu_free);
  }

  void arrive(Event event) {
    Host& host = hosts_[event.host];
    const std::int64_t start = std::max(event.time, host.receive_free);
    host.receive_free = start + p_.g + (event.bytes - 1) * p_.G;
    event.kind = EventKind::delivery;
    event.time = start + (event.bytes - 1) * p_.G;
    push(event);
  }

  void deliver(const Event& event) {
    Host& host = hosts_[event.host];
    const auto awaited = std::ranges::find(host.posted, event.peer);
    if (awaited == host.posted.end()) return host.delivered.push_back({event.peer, event.bytes});
    host.posted.erase(awaited);
    try_receive(event);
  }

  void try_receive(Event event) {
    event.kind = EventKind::receive;
    Host& host = hosts_[event.host];
    const std::int64_t start = std::max(event.time, host.cpu_free);
    if (start > event.time) return retry(event, start);
    host.cpu_free = start + p_.o + (event.bytes - 1) * p_.O;
    finish_op(event.host, host.cpu_free);
    if (event.bytes > p_.S) finish_op(event.peer, host.cpu_free);
  }

  void retry(Event event, std::int64_t time) {
    event.time = time;
    push(event);
  }

  void finish_op(std::uint32_t index, std::int64_t time) {
    Host& host = hosts_[index];
    host.done = std::max(host.done, time);
    if (--host.open == 0) push({host.done, 0, EventKind::round, index});
  }

  const LogGP& p_;
  const HostProgram& program_;
  std::vector<Host> hosts_;
  std::priority_queue<Event> events_;
  std::uint64_t next_sequence_ = 0;
  std::vector<HostOp> ops_;  // of the round that begins
};

std::uint32_t power_at(std::uint32_t round) { return std::uint32_t{1} << round; }

// Binomial tree: host h > 0 hangs below h without its highest bit.
std::uint32_t parent_of(std::uint32_t host) { return host - std::bit_floor(host); }
std::vector<std::uint32_t> children_of(std::uint32_t host, std::uint32_t hosts) {
  std::vector<std::uint32_t> children;
  const std::uint32_t first = host == 0 ? 1 : 2 * std::bit_floor(host);
  for (std::uint64_t bit = first; host + bit < hosts; bit *= 2)
    children.push_back(host + static_cast<std::uint32_t>(bit));
  return children;
}

}  // namespace

std::vector<std::int64_t> run_loggp(const LogGP& parameters, std::uint32_t hosts,
                                    const HostProgram& program) {
  return LogGPRun(parameters, hosts, program).run();
}

HostProgram binomial_broadcast(std::uint32_t hosts, std::int64_t bytes) {
  return [=](std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out) {
    if (round == 0 && host != 0) out.push_back({false, parent_of(host), bytes});
    if (round == 1)
      for (const std::uint32_t child : children_of(host, hosts))
        out.push_back({true, child, bytes});
    return round < 2;
  };
}

HostProgram binomial_reduce(std::uint32_t hosts, std::int64_t bytes) {
  return [=](std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out) {
    const std::vector<std::uint32_t> children = children_of(host, hosts);
    if (round < children.size()) {
      out.push_back({false, children[children.size() - 1 - round], bytes});
      return true;
    }
    if (round == children.size() && host != 0) out.push_back({true, parent_of(host), bytes});
    return round == children.size();
  };
}

HostProgram dissemination(std::uint32_t hosts, std::int64_t bytes) {
  return [=](std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out) {
    const std::uint32_t distance = power_at(round);
    if (distance >= hosts) return false;
    out.push_back({true, (host + distance) % hosts, bytes});
    out.push_back({false, (host + hosts - distance) % hosts, bytes});
    return true;
  };
}

HostProgram ring_allreduce(std::uint32_t hosts, std::int64_t bytes) {
  return [=](std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out) {
    out.push_back({true, (host + 1) % hosts, bytes / hosts});
    out.push_back({false, (host + hosts - 1) % hosts, bytes / hosts});
    return round < 2 * (hosts - 1);
  };
}

// Halve the exchanged part down to bytes / n, then double it back, with the same partners.
HostProgram recursive_halving_doubling(std::uint32_t hosts, std::int64_t bytes) {
  const auto levels = static_cast<std::uint32_t>(std::countr_zero(hosts));
  return [=](std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out) {
    if (round >= 2 * levels) return false;
    const std::uint32_t level = round < levels ? round : 2 * levels - 1 - round;
    const std::uint32_t partner = host ^ (hosts >> (level + 1));
    out.push_back({true, partner, bytes >> (level + 1)});
    out.push_back({false, partner, bytes >> (level + 1)});
    return true;
  };
}

HostProgram linear_all_to_all(std::uint32_t hosts, std::int64_t bytes_per_peer) {
  return [=](std::uint32_t host, std::uint32_t round, std::vector<HostOp>& out) {
    const std::uint32_t distance = round + 1;
    if (distance >= hosts) return false;
    out.push_back({true, (host + distance) % hosts, bytes_per_peer});
    out.push_back({false, (host + hosts - distance) % hosts, bytes_per_peer});
    return true;
  };
}

}  // namespace railyard::sim
