// The network of one run: shared resources, and flows that divide them max-min fairly.
//
// A *flow* has one rate r and uses resources with integer weights w: it takes w * r of each. A path
// is the special case w = 1 everywhere; multicast and in-switch reduction are other weights.
// `share` makes a flow count as that many equal ones; `cap` bounds its rate; a `multiplicity` m of
// a flow or resource says that it stands for m equal ones.
//
// Definition (integer max-min). Rates are integers in 2^-16 B/s. A flow's rate is share * level.
// Let capacity_R = capacity * multiplicity of resource R and load_f,R = share * weight *
// multiplicity of flow f. Starting with all flows unfixed:
//   level of R = floor((capacity_R - what fixed flows take) / (sum of load of unfixed flows on R));
//   the smallest of all resources' levels and of all flows' floor(cap / share) is the next level s;
//   every unfixed flow on ANY resource whose level is s is fixed at s at once, and so are flows
//   whose cap level is s. Repeat.
// The result depends on the set of active flows alone: not on their order, history or numbering.
//
// Rates are solved again only at the end of an instant in which the set of active flows changed,
// and only for what is connected to the change through shared resources. A flow that ends and is
// started again within one instant (a connection whose next chunk is ready) changes nothing and
// costs no solve.
//
// A resource is *tight* when it may hold back a flow: if one of its active flows has no cap, or if
// the sum of load * (cap level + 1) over them exceeds its capacity. The level of one that is not
// tight stays above the lowest cap level of its unfixed flows, so that it never is a bottleneck;
// it neither takes part in a solve nor connects what shares it. Where channels are slower than
// their share of every link, as most are, flows go at their caps and nothing is solved at all.
//
// Progress is kept per bottleneck, not per flow: all flows held back by resource R advance by the
// same level, so R keeps one cumulative service integral V and each flow the value of V at which it
// ends. A change of R's level costs O(1) however many flows R holds back. Work and V are 128-bit; a
// flow ends at the first picosecond at which its work is done.
//
// Cost per solve: O(flows x uses + resources log resources) of the touched component.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/event_queue.h"
#include "sim/flow.h"
#include "sim/ids.h"
#include "sim/network_state.h"
#include "sim/units.h"

namespace railyard::sim {

class Network final : public EventHandler, public Settler, private NetworkState {
 public:
  explicit Network(EventQueue& queue);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  ResourceId add_resource(Bandwidth capacity, std::uint32_t multiplicity = 1);
  FlowId add_flow(const FlowSpec& spec);

  // From now on the resource has another capacity (a link that degrades, fails or recovers); flows
  // under way go on at their new rates. Not in a network that was pruned (only_flows_from). Cost:
  // O(flows x uses).
  void set_capacity(ResourceId resource, Bandwidth capacity);

  // Starts the transfer of `size` at the current time; the flow must not be under way. Zero bytes,
  // or a flow with neither uses nor cap, are done within the instant.
  void start(FlowId flow, Bytes size);

  // Rate of a flow under way, valid after the instant in which it changed was settled.
  [[nodiscard]] Bandwidth rate(FlowId flow) const;
  [[nodiscard]] std::size_t active_flows() const { return active_count_; }
  // Bytes that finished transfers have moved over the resource, weights and multiplicities
  // included.
  [[nodiscard]] Bytes carried(ResourceId resource) const {
    return bytes(resources_[resource.index()].carried);
  }
  // Counts bytes of a transfer that was simulated elsewhere.
  void add_carried(ResourceId resource, Bytes size) {
    resources_[resource.index()].carried += size.raw();
  }
  [[nodiscard]] Bandwidth capacity(ResourceId resource) const {
    return Bandwidth::from_raw(
        static_cast<std::int64_t>(resources_[resource.index()].unit_capacity));
  }
  [[nodiscard]] std::size_t resource_count() const { return resources_.size(); }
  [[nodiscard]] std::size_t flow_count() const { return flows_.size(); }
  // Whether a flow was ever held back by it. If not, more capacity would have changed nothing.
  [[nodiscard]] bool limiting(ResourceId resource) const {
    return resources_[resource.index()].limiting;
  }
  // A promise that none but flows `first`, `first` + 1, ... will be started; none may be under way.
  // Solves get cheaper, rates stay the same: see network_prune.cpp.
  void only_flows_from(FlowId first);
  [[nodiscard]] std::uint64_t solves() const { return solves_; }

  void on_event(std::uint32_t code, std::uint32_t argument) override;
  void settle() override;

 private:
  // network.cpp: life of a flow
  void finish(std::uint32_t flow);
  void finish_private(std::uint32_t flow);
  void finish_groups();
  void activate(std::uint32_t flow);
  void deactivate(std::uint32_t flow);
  void set_private(std::uint32_t flow, std::uint64_t level);
  void attach(std::uint32_t flow, std::uint32_t resource);
  void update_tightness(std::uint32_t resource);
  void solve_flow(std::uint32_t flow);
  [[nodiscard]] Uint128 work_left(const Flow& flow) const;
  [[nodiscard]] std::uint64_t level_of_flow(const Flow& flow) const;
  [[nodiscard]] std::uint64_t solo_level(const Flow& flow) const;
  void next_stamp();
  void begin_work(std::uint32_t flow);
  // now + ceil(work / level), or the end of time.
  [[nodiscard]] std::int64_t end_of(Uint128 work, std::uint64_t level) const;
  [[nodiscard]] std::int64_t now() const { return queue_->now().time_since_epoch().count(); }

  // network_groups.cpp: completions of flows held back by a resource
  void advance(Resource& resource) const;
  [[nodiscard]] bool is_current(const Mark& mark, std::uint32_t resource) const;
  void push_mark(std::uint32_t resource, std::uint32_t flow);
  void update_group(std::uint32_t resource);
  void place_group(std::uint32_t resource, std::int64_t end_time);
  void sift_group(std::size_t position);
  [[nodiscard]] bool group_before(std::uint32_t a, std::uint32_t b) const;
  void schedule_groups();

  // network_prune.cpp: resources that cannot matter, and those that did
  class Pruning;
  void note_alone(Flow& flow);

  // network_solve.cpp: max-min
  void solve_component(std::uint32_t seed);
  void collect(std::uint32_t seed);
  void keep_lower_levels();
  void search(std::uint32_t seed);
  void merge_clusters(const Flow& flow);
  void rebuild(std::uint32_t cluster);
  void fill_levels();
  bool next_level(std::uint64_t& level);
  void add_candidate(std::uint32_t resource);
  void sift_candidate();
  void fix(std::uint32_t flow, std::uint64_t level, std::uint32_t resource);
  void fix_all_on(std::uint32_t resource, std::uint64_t level);
  void hold_pair(std::uint32_t resource, std::uint32_t position);
  void release_pair(std::uint32_t use);
  void swap_active(Resource& resource, std::uint32_t a, std::uint32_t b);
  void take(const Flow& flow, std::uint64_t level);
  [[nodiscard]] std::uint64_t level_of(std::uint32_t resource) const;

  EventQueue* queue_;
  std::vector<Flow> flows_;
  std::vector<Use> uses_;
  std::vector<Resource> resources_;
  std::vector<Filling> filling_;   // by resource
  std::vector<Cluster> clusters_;  // by Resource::cluster
  std::vector<std::uint32_t> vacant_clusters_;
  std::vector<std::uint32_t> changed_;         // flows started or ended in this instant
  std::vector<std::uint32_t> dirty_;           // resources touched in this instant
  std::vector<std::uint32_t> released_;        // flows on resources that are tight no more
  std::vector<std::uint32_t> touched_groups_;  // groups whose next completion must be found again
  std::vector<std::uint32_t> groups_;          // indexed heap of resources by (end_time, id)
  std::int64_t group_event_ = -1;              // time of the earliest event scheduled for groups_
  std::size_t active_count_ = 0;
  std::uint64_t solves_ = 0;

  // Scratch of a solve.
  std::uint32_t stamp_ = 0;
  std::uint64_t lowest_change_ = 0;  // level of the slowest flow that ended; 0 if one started
  bool capacities_changed_ = false;  // in this instant
  std::uint32_t level_stamp_ = 0;
  std::vector<std::uint32_t> component_;  // resources
  bool pairs_only_ = false;               // all flows of the component are pair flows
  std::vector<Candidate> candidates_;     // heap of resources by level
  std::vector<std::uint32_t> bottlenecks_;
  std::vector<std::uint32_t> capped_;  // flows with a cap, by cap level
  std::size_t next_capped_ = 0;
  std::vector<std::uint32_t> new_private_;
};

}  // namespace railyard::sim
