#include "scenarios/kv_reductions.h"

namespace railyard::scenarios {
namespace {

class Ignored final : public sim::CollectiveListener {
 public:
  void on_collective_done(const sim::CollectiveRunner&, std::uint32_t, std::uint32_t) override {}
};

}  // namespace

Result<sim::Duration> KvReductions::simulate(sim::Bytes size) {
  constexpr std::int64_t kElement = 2;
  RAILYARD_ASSIGN(sim::CollectiveCall call, choose(context_->scenario, *communication_,
                                                   {sim::Collective::all_reduce, size, kElement}));
  call.in_place = true;
  sim::Simulation apart(context_->bound.topology, *context_->bound.costs);
  sim::CollectiveRunner runner(apart,
                               {&context_->bound.topology, communication_->group,
                                communication_->communicator.get(), context_->bound.costs.get()},
                               {});
  RAILYARD_ASSIGN(const sim::PlanId plan, runner.plan(call));
  Ignored nobody;
  for (std::uint32_t r = 0; r < communication_->group.size(); ++r) runner.enter(r, plan, nobody);
  apart.queue().run();
  return apart.now().time_since_epoch() + context_->bound.parameters.host.collective_start;
}

sim::Duration KvReductions::at(sim::Bytes size) {
  const auto found = times_.find(size);
  if (found != times_.end()) return found->second;
  const auto simulated = simulate(size);
  if (!simulated.ok() && !failure_) failure_ = simulated.error();
  return times_.emplace(size, simulated.ok() ? simulated.value() : sim::Duration()).first->second;
}

sim::Duration KvReductions::operator()(sim::Bytes size) {
  constexpr std::int64_t kEach = std::int64_t{4} << 20;
  if (size.raw() <= kEach) return at(size);
  std::int64_t step = kEach / 16;
  while (size.raw() >= 32 * step) step *= 2;
  const std::int64_t rest = size.raw() % step;
  const sim::Bytes below = size - sim::bytes(rest);
  const sim::Duration low = at(below);
  if (rest == 0) return low;
  const sim::Int128 rise = (at(below + sim::bytes(step)) - low).count();
  return low + sim::Duration(static_cast<std::int64_t>(rise * rest / step));
}

}  // namespace railyard::scenarios
