// Raw transfers between ranks: each is one flow from GPU to GPU (gpu_path.h). It ends one route
// latency after its last byte was sent.
#include <algorithm>

#include "algorithms/places.h"
#include "scenarios/faults.h"
#include "scenarios/gpu_path.h"
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
      RAILYARD_ASSIGN(const GpuPath path, gpu_path(context_->bound, places, flow.from, flow.to));
      const auto tag = static_cast<std::uint32_t>(flows_.size());
      ids_.push_back(context_->simulation.network().add_flow(
          {.uses = path.uses, .listener = this, .tag = tag}));
      latency_.push_back(path.latency);
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
    const Scenario& scenario = context_->scenario;
    const bool alone = !scenario.ddp && !scenario.workload && scenario.collectives.empty();
    if (++done_ == flows_.size() && alone) end_faults(*context_);
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
  RunContext* context_;
  std::size_t done_ = 0;
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
