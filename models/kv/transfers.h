// The transfer library of a serving engine (NIXL, Mooncake's Transfer Engine) over the network of a
// run: calls with lists of descriptors, work requests, and what of it is serial.
//
//   call      A rank hands over a list of parts. Its transfer threads take calls in order: a call
//             waits for a free one, then takes `request_overhead` (+ the handshake with a new
//             peer), then `descriptor_cost` per work request. A synchronous library keeps its
//             thread until the data have arrived.
//   part      Bytes on one way, in so many work requests. Enters the wire when its first request is
//             posted and is over no earlier than its last was: time = max(posting, wire), to within
//             one request. Parts on one way follow each other, as requests of a queue pair do.
//   wire      A flow over the links of the way, shared max-min with everything else on them. A work
//             request also takes `slice_cost` of the NIC that issues it, serial with its bytes: NIC
//             time = bytes / rate + requests * slice_cost. The NIC's work-request engine is a
//             resource of its own, so that others use the link meanwhile.
//   storage   A way of two legs: the data are written, then read.
//
// Sources of the costs: kv_costs(). Cost: O(1) events per part.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/enum_table.h"
#include "sim/event_queue.h"
#include "sim/field_table.h"
#include "sim/network.h"
#include "sim/units.h"

namespace railyard::models {

enum class KvLibrary { nixl, mooncake };
enum class KvBackend { automatic, nvlink, pcie, rdma, tcp, storage };

struct KvTransferCosts {
  sim::Duration handshake{};         // the first transfer between two instances
  sim::Duration request_overhead{};  // of a call, before its first work request
  sim::Duration descriptor_cost{};   // host time per work request
  sim::Bytes slice{};                // longest work request; 0 = any length
  sim::Duration slice_cost{};        // NIC time per work request beside its bytes
  std::uint32_t threads = 1;         // calls of a rank at once
  bool join_blocks = true;           // blocks that are neighbours on both sides become one request
  bool synchronous = false;          // a thread waits until its call's data have arrived
};

// What a library costs on a back-end, with the source of each figure in the .cpp.
KvTransferCosts kv_costs(KvLibrary library, KvBackend backend);

struct KvLeg {
  std::vector<sim::ResourceUse> uses;
  sim::Duration latency{};
  sim::Bandwidth cap{};       // 0 = none
  sim::ResourceId engine{};   // work-request engine of the NIC that issues; invalid: none
  sim::Bandwidth nic_rate{};  // of that NIC
};
using KvWay = std::vector<KvLeg>;

// The resource that stands for the work-request engine of a NIC.
sim::ResourceId add_request_engine(sim::Network& network, sim::Bandwidth nic_rate);

struct KvPart {
  std::uint32_t way = 0;
  sim::Bytes size{};
  std::int64_t requests = 1;
};

struct KvCallTimes {
  sim::Time asked{};
  sim::Time begun{};    // a thread took it
  sim::Time ready{};    // it began to post
  sim::Time on_wire{};  // its first part began to move
  sim::Time posted{};   // its last work request was
  sim::Time done{};     // everything has arrived
};

class KvCallListener {
 public:
  virtual ~KvCallListener() = default;
  virtual void on_call_done(std::uint32_t tag, const KvCallTimes& times) = 0;
};

class KvTransfers final : public sim::EventHandler, public sim::FlowListener {
 public:
  KvTransfers(sim::EventQueue& queue, sim::Network& network) : queue_(&queue), network_(&network) {}
  KvTransfers(const KvTransfers&) = delete;
  KvTransfers& operator=(const KvTransfers&) = delete;

  // The transfer threads of a rank that use one back-end.
  std::uint32_t add_sender(const KvTransferCosts& costs);
  std::uint32_t add_way(KvWay way);  // for senders with the costs that its NIC charges
  void set_listener(KvCallListener& listener) { listener_ = &listener; }

  // At the current time. `extra` comes on top of `request_overhead`. Parts of one sender's calls
  // may share ways with those of others.
  void call(std::uint32_t sender, sim::Duration extra, std::vector<KvPart> parts,
            std::uint32_t tag);

  [[nodiscard]] const KvTransferCosts& costs(std::uint32_t sender) const {
    return senders_[sender].costs;
  }
  [[nodiscard]] sim::Bytes moved() const { return moved_; }
  [[nodiscard]] std::int64_t requests() const { return requests_; }
  [[nodiscard]] std::int64_t calls() const { return static_cast<std::int64_t>(calls_made_); }

  void on_event(std::uint32_t code, std::uint32_t argument) override;
  void on_flow_done(std::uint32_t tag) override;

 private:
  enum Code : std::uint32_t { kPosting, kEnter, kRelease, kArrived };

  struct Call {
    std::uint32_t sender = 0;
    std::uint32_t tag = 0;
    sim::Duration extra{};
    std::vector<KvPart> parts;
    std::uint32_t left = 0;
    bool wire_seen = false;
    KvCallTimes times;
  };
  struct Moving {  // a part on its way
    std::uint32_t call = 0;
    KvPart part;
    std::uint32_t leg = 0;  // index into legs_
    sim::Time posted{};
  };
  struct Leg {
    KvLeg spec;
    std::uint32_t next = kNone;                  // leg behind it
    std::map<std::uint32_t, sim::FlowId> flows;  // by weight on the engine
    std::deque<std::uint32_t> waiting;           // moving parts
    std::uint32_t current = kNone;
  };
  struct Sender {
    KvTransferCosts costs;
    std::uint32_t busy = 0;
    std::deque<std::uint32_t> waiting;  // calls
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  void take_calls(std::uint32_t sender);
  void post_parts(std::uint32_t call);
  void enter(std::uint32_t moving);
  void start_next(std::uint32_t leg);
  void arrived(std::uint32_t moving);
  [[nodiscard]] sim::FlowId flow(std::uint32_t leg, const Moving& moving);
  template <typename T>
  static std::uint32_t put(std::vector<T>& slots, std::vector<std::uint32_t>& vacant, T value);

  sim::EventQueue* queue_;
  sim::Network* network_;
  KvCallListener* listener_ = nullptr;
  std::vector<Sender> senders_;
  std::vector<std::uint32_t> ways_;  // first leg of each
  std::vector<Leg> legs_;
  std::vector<Call> calls_;
  std::vector<Moving> moving_;
  std::vector<std::uint32_t> vacant_calls_;
  std::vector<std::uint32_t> vacant_moving_;
  sim::Bytes moved_{};
  std::int64_t requests_ = 0;
  std::uint64_t calls_made_ = 0;
};

}  // namespace railyard::models

namespace railyard::sim {
template <>
struct EnumTable<models::KvLibrary> {
  static constexpr std::string_view kind = "transfer library";
  static constexpr std::array entries{EnumEntry{models::KvLibrary::nixl, "nixl"},
                                      EnumEntry{models::KvLibrary::mooncake, "mooncake"}};
};
template <>
struct EnumTable<models::KvBackend> {
  static constexpr std::string_view kind = "transfer back-end";
  static constexpr std::array entries{EnumEntry{models::KvBackend::automatic, "auto"},
                                      EnumEntry{models::KvBackend::nvlink, "nvlink"},
                                      EnumEntry{models::KvBackend::pcie, "pcie"},
                                      EnumEntry{models::KvBackend::rdma, "rdma"},
                                      EnumEntry{models::KvBackend::tcp, "tcp"},
                                      EnumEntry{models::KvBackend::storage, "storage"}};
};
}  // namespace railyard::sim
