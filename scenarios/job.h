// The processes of a training job: one GPU and one host thread for every rank of the world.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/run_parts.h"
#include "sim/gpu.h"
#include "sim/host.h"

namespace railyard::scenarios {

struct Job {
  std::vector<std::unique_ptr<sim::Gpu>> gpus;          // by rank of the world
  std::vector<std::unique_ptr<sim::HostThread>> hosts;  // destroyed first: they hold the coroutines

  [[nodiscard]] bool finished() const;
};

Job make_job(RunContext& context);  // hosts that cost what the profile says
Job make_job(RunContext& context, const sim::HostParameters& host);

// Runs the queue; if the job then is not at its end, says who waits for whom.
void run_job(RunContext& context, const std::vector<const sim::CollectiveRunner*>& runners,
             const Job& job);

}  // namespace railyard::scenarios
