// Raw transfers between ranks: each is one flow from GPU to GPU, through the NICs nearest to both
// where they do not share a node or NVLink domain. It ends one route latency after its last byte
// was sent.
#include <algorithm>

#include "algorithms/places.h"
#include "scenarios/run_parts.h"
#include "scenarios/where.h"

namespace railyard::scenarios {
namespace {

class Transfers final : public TrafficSource, public sim::EventHandler, public sim::FlowListener {
 public:
  explicit Transfers(RunContext& context) : context_(&context) {}

  Result<void> add(const std::vector<Flow>& flows) {
    RAILYARD_ASSIGN(const algorithms::Places places,
                    algorithms::find_places(context_->bound.topology, context_->bound.world));
    for (const Flow& flow : flows) {
      RAILYARD_ASSIGN(const sim::Route route, route_of(flow, places));
      std::vector<sim::ResourceUse> uses;
      sim::Duration latency{};
      for (const sim::LinkId link : route) {
        uses.push_back({sim::ResourceId(link.value()), 1});
        const sim::Link& each = context_->bound.topology.links[link.index()];
        latency += context_->bound.parameters.link(each.link_class).latency + each.extra_latency;
      }
      const auto tag = static_cast<std::uint32_t>(flows_.size());
      ids_.push_back(
          context_->simulation.network().add_flow({.uses = uses, .listener = this, .tag = tag}));
      latency_.push_back(latency);
      flows_.push_back({flow.from, flow.to, flow.size, flow.start, sim::Duration::max()});
      context_->simulation.queue().schedule(sim::Time(flow.start), *this, 0, tag);
    }
    return {};
  }

  void on_event(std::uint32_t, std::uint32_t flow) override {
    context_->simulation.network().start(ids_[flow], flows_[flow].size);
  }
  void on_flow_done(std::uint32_t flow) override {
    flows_[flow].end = sim::later(context_->simulation.now(), latency_[flow]).time_since_epoch();
  }

  void finish() override {
    for (const FlowResult& flow : flows_) {
      const auto who = std::uint64_t{flow.from} << 32 | flow.to;
      context_->trace.add_digest(who ^ sim::mix_hash(static_cast<std::uint64_t>(flow.end.count())));
      context_->result.messages += 1;
      if (flow.end < sim::Duration::max())
        context_->result.duration = std::max(context_->result.duration, flow.end);
    }
    context_->result.flows = std::move(flows_);
  }

 private:
  Result<sim::Route> route_of(const Flow& flow, const algorithms::Places& places) const {
    const sim::Group& world = context_->bound.world;
    std::vector<sim::DeviceId> way{world[flow.from].gpu};
    const std::uint32_t from_place = places.place_of[flow.from];
    const std::uint32_t to_place = places.place_of[flow.to];
    const bool nics =
        !places.nearest_rails[flow.from].empty() && !places.nearest_rails[flow.to].empty();
    if (from_place != to_place && nics) {
      way.push_back(places.places[from_place].nics[places.nearest_rails[flow.from].front()]);
      way.push_back(places.places[to_place].nics[places.nearest_rails[flow.to].front()]);
    }
    way.push_back(world[flow.to].gpu);
    return context_->bound.topology.route(way, std::uint64_t{flow.from} << 32 | flow.to);
  }

  RunContext* context_;
  std::vector<FlowResult> flows_;
  std::vector<sim::FlowId> ids_;
  std::vector<sim::Duration> latency_;
};

}  // namespace

Result<std::unique_ptr<TrafficSource>> start_traffic(RunContext& context) {
  auto transfers = std::make_unique<Transfers>(context);
  if (!context.scenario.traffic.empty()) {
    RAILYARD_ASSIGN(const std::vector<Flow> flows,
                    traffic_of(context.scenario, context.bound.world.size()));
    RAILYARD_TRY(transfers->add(flows));
  }
  return std::unique_ptr<TrafficSource>(std::move(transfers));
}

}  // namespace railyard::scenarios
