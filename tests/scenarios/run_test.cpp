#include <doctest/doctest.h>
#include "scenarios/explore.h"
#include <chrono>
#include "tests/scenarios/run_helpers.h"
namespace railyard::scenarios {
TEST_CASE("probe") {
  for (const char* name : {"resnet50-ddp-2gpu.yaml", "bert-large-ddp-dgx-a100.yaml", "collective-sweep-h100.yaml", "nvl72.yaml",
       "gpt2-xl-ddp-4x8-h100.yaml", "gpt2-xl-ddp-4x8-h100-one-rail.yaml", "gpt2-xl-ddp-4x8-h100-oversubscribed.yaml", "explore-bucket-size.yaml"})
    for (const char* replay : {"true"}) {
      auto t = std::chrono::steady_clock::now();
      const Scenario s = tests::shipped_scenario(name, {std::string("engine.replay=") + replay});
      auto r = tests::good_run(s);
      std::chrono::duration<double> d = std::chrono::steady_clock::now() - t;
      MESSAGE(name, " ", replay, " ", d.count(), " s, events ", r.events, " replays ", r.replays, " messages ", r.messages, " dur us ", sim::to_us(r.duration), " step us ", r.ddp ? sim::to_us(r.ddp->step_time) : 0.0, " exposed us ", r.ddp ? sim::to_us(r.ddp->exposed) : 0.0, r.ddp? " compute us " : "", r.ddp ? sim::to_us(r.ddp->compute) : 0.0, " bound ", r.ddp ? r.ddp->bound_by : "", r.ddp ? r.ddp->buckets.size() : 0u);
    }
}
}
