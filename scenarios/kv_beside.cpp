#include "scenarios/kv_beside.h"

#include <fmt/format.h>

#include "scenarios/where.h"

namespace railyard::scenarios {
namespace {

class Ignored final : public sim::CollectiveListener {
 public:
  void on_collective_done(const sim::CollectiveRunner&, std::uint32_t, std::uint32_t) override {}
};

struct Call {
  sim::PlanId plan;
  std::size_t row = 0;
};

// The calls of one communicator, one behind the other.
class Loop final : public sim::EventHandler, public sim::CollectiveListener {
 public:
  Loop(RunContext& context, std::unique_ptr<sim::CollectiveRunner> runner, std::vector<Call> calls,
       std::vector<KvBesideRow>& rows, const std::function<bool()>& ended)
      : context_(&context),
        runner_(std::move(runner)),
        calls_(std::move(calls)),
        rows_(&rows),
        ended_(&ended) {}

  void on_event(std::uint32_t, std::uint32_t) override {
    if ((*ended_)()) return;
    begin_ = context_->simulation.now();
    left_ = runner_->group().size();
    for (std::uint32_t rank = 0; rank < runner_->group().size(); ++rank)
      runner_->enter(rank, calls_[next_].plan, *this);
  }

  void on_collective_done(const sim::CollectiveRunner&, std::uint32_t, std::uint32_t) override {
    if (--left_ > 0) return;
    KvBesideRow& row = (*rows_)[calls_[next_].row];
    ++row.calls;
    row.mean += context_->simulation.now() - begin_;  // the sum until rows() divides it
    next_ = (next_ + 1) % calls_.size();
    start();
  }

  void start() { context_->simulation.queue().schedule(context_->simulation.now(), *this, 0, 0); }
  [[nodiscard]] const sim::CollectiveRunner& runner() const { return *runner_; }

 private:
  RunContext* context_;
  std::unique_ptr<sim::CollectiveRunner> runner_;
  std::vector<Call> calls_;
  std::vector<KvBesideRow>* rows_;
  const std::function<bool()>* ended_;
  std::size_t next_ = 0;
  std::size_t left_ = 0;
  sim::Time begin_{};
};

class Loops final : public KvBeside {
 public:
  Loops(RunContext& context, std::function<bool()> ended)
      : context_(&context), ended_(std::move(ended)) {}

  Result<void> add(const CollectiveRun& run) {
    const std::size_t first_row = rows_.size();
    for (Communication* communication : communications_of(context_->bound, run.group)) {
      auto runner = make_runner(*context_, *communication);
      std::vector<Call> calls;
      for (const sim::Bytes size : run.sizes) {
        RAILYARD_ASSIGN(const sim::CollectiveCall call, call_of(run, size, *communication));
        RAILYARD_ASSIGN(const sim::PlanId plan, runner->plan(call));
        calls.push_back({plan, first_row + calls.size()});
        if (rows_.size() > calls.back().row) continue;
        RAILYARD_ASSIGN(const sim::Duration alone, time_alone(call, *communication));
        rows_.push_back(
            {fmt::format("{} {} {}", sim::to_text(run.collective), sim::to_text(size), run.group),
             communication->group.size(),
             0,
             {},
             alone});
      }
      loops_.push_back(
          std::make_unique<Loop>(*context_, std::move(runner), std::move(calls), rows_, ended_));
    }
    return {};
  }

  void start() override {
    for (const auto& loop : loops_) loop->start();
  }

  std::vector<KvBesideRow> rows() override {
    for (const auto& loop : loops_) account(loop->runner(), *context_);
    std::vector<KvBesideRow> out = rows_;
    for (KvBesideRow& row : out)
      if (row.calls > 0) row.mean /= row.calls;
    return out;
  }

 private:
  // nccl-tests' size column: for AllGather and ReduceScatter the total over the ranks.
  [[nodiscard]] Result<sim::CollectiveCall> call_of(const CollectiveRun& run, sim::Bytes size,
                                                    const Communication& communication) const {
    const std::int64_t element = models::element_size(run.dtype);
    const auto ranks = static_cast<std::int64_t>(communication.group.size());
    const bool parts = sim::nccl_tests_size(run.collective, sim::bytes(1), 2).raw() == 2;
    const std::int64_t share = size.raw() / (parts ? ranks : 1);
    const std::int64_t unit =
        run.collective == sim::Collective::all_to_all ? ranks * element : element;
    return choose(context_->scenario, communication,
                  {run.collective, sim::bytes(share / unit * unit), element});
  }

  [[nodiscard]] Result<sim::Duration> time_alone(const sim::CollectiveCall& call,
                                                 const Communication& communication) const {
    sim::Simulation apart(context_->bound.topology, *context_->bound.costs);
    sim::CollectiveRunner runner(apart,
                                 {&context_->bound.topology, communication.group,
                                  communication.communicator.get(), context_->bound.costs.get()},
                                 {});
    RAILYARD_ASSIGN(const sim::PlanId plan, runner.plan(call));
    Ignored nobody;
    for (std::uint32_t r = 0; r < communication.group.size(); ++r) runner.enter(r, plan, nobody);
    apart.queue().run();
    return apart.now().time_since_epoch();
  }

  RunContext* context_;
  std::function<bool()> ended_;
  std::vector<KvBesideRow> rows_;
  std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace

Result<std::unique_ptr<KvBeside>> KvBeside::make(RunContext& context,
                                                 const std::vector<CollectiveRun>& runs,
                                                 std::function<bool()> ended) {
  auto loops = std::make_unique<Loops>(context, std::move(ended));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto added = loops->add(runs[i]);
    if (!added.ok())
      return at_path(context.scenario, fmt::format("kv.beside[{}]", i), added.error());
  }
  return std::unique_ptr<KvBeside>(std::move(loops));
}

}  // namespace railyard::scenarios
