// Megatron's pipeline schedules: orders written out by hand, and that no order of messages can
// stop.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/megatron/pipeline_schedule.h"

namespace railyard::models {
namespace {

// "F0.a": micro-batch 0 forward through chunk a.
std::string order(const PipelineShape& shape, std::int64_t stage) {
  std::string text;
  for (const PipelineStep& step : pipeline_schedule(shape, stage)) {
    if (step.action != PipelineAction::forward && step.action != PipelineAction::backward) continue;
    if (!text.empty()) text += ' ';
    text += step.action == PipelineAction::forward ? 'F' : 'B';
    text += std::to_string(step.micro_batch);
    if (shape.chunks > 1) text += static_cast<char>('a' + step.chunk);
  }
  return text;
}

TEST_CASE("pipeline schedule: without stages, forward and backward in turn") {
  CHECK(order({.micro_batches = 3}, 0) == "F0 B0 F1 B1 F2 B2");
}

TEST_CASE("pipeline schedule: 1F1B, 4 stages, 6 micro-batches") {
  const PipelineShape shape{.stages = 4, .micro_batches = 6};
  CHECK(order(shape, 0) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  CHECK(order(shape, 1) == "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5");
  CHECK(order(shape, 2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
  CHECK(order(shape, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
}

TEST_CASE("pipeline schedule: fewer micro-batches than stages are all warm-up") {
  const PipelineShape shape{.stages = 4, .micro_batches = 2};
  CHECK(order(shape, 0) == "F0 F1 B0 B1");
  CHECK(order(shape, 3) == "F0 B0 F1 B1");
}

// Stage 0 warms up with 2 (2 - 0 - 1) + (2 - 1) 2 = 4 forwards, stage 1 with 2.
TEST_CASE("pipeline schedule: interleaved, 2 stages with 2 chunks, 4 micro-batches") {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 4};
  CHECK(order(shape, 0) == "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  CHECK(order(shape, 1) == "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
}

// Stage 0: 2 x 3 + 4 = 10 are more than all 8. Stage 3: 4.
TEST_CASE("pipeline schedule: interleaved, all in the warm-up") {
  const PipelineShape shape{.stages = 4, .chunks = 2, .micro_batches = 4};
  CHECK(order(shape, 0) == "F0a F1a F2a F3a F0b F1b F2b F3b B0b B1b B2b B3b B0a B1a B2a B3a");
  CHECK(order(shape, 3) == "F0a F1a F2a F3a F0b B0b F1b B1b F2b B2b F3b B3b B0a B1a B2a B3a");
}

TEST_CASE("pipeline schedule: overlap changes no order") {
  for (std::int64_t stage = 0; stage < 3; ++stage)
    CHECK(order({3, 2, 6, true}, stage) == order({3, 2, 6, false}, stage));
}

// The calls of stage 1 of 2 in 1F1B, as schedules.py makes them.
TEST_CASE("pipeline schedule: calls of the last stage") {
  std::string text;
  for (const PipelineStep& step : pipeline_schedule({.stages = 2, .micro_batches = 2}, 1)) {
    if (step.action == PipelineAction::forward) text += "F ";
    if (step.action == PipelineAction::backward) text += "B ";
    if (step.action != PipelineAction::communicate) continue;
    text += std::string(step.send_forward ? "sf" : "") + (step.recv_forward ? "rf" : "") +
            (step.send_backward ? "sb" : "") + (step.recv_backward ? "rb" : "") + " ";
  }
  CHECK(text == "rf F B rfsb F B sb ");
}

std::string problem(const std::string& order) {
  const auto made = stated_schedule({.stages = 2, .micro_batches = 2}, 0, order);
  return made.ok() ? "" : made.error().message;
}

TEST_CASE("pipeline schedule: orders of one's own") {
  CHECK(problem("F0 F1 B0 B1").empty());
  CHECK(problem("F0 F1 B1 B0").empty());
  CHECK(problem("F0 B1 F1 B0") == "B1: its forward has not run");
  CHECK(problem("F0 F0 B0 B1") == "F0: it stands twice");
  CHECK(problem("F0 B0 F1") == "B1 is missing");
  CHECK(problem("F0 B0") == "F1 is missing");
  CHECK(problem("F0 B0 F2 B2") == "F2: there are 2 micro-batches");
  CHECK(problem("F0 X1") == "'X1' is neither F nor B with a micro-batch's number");
  CHECK(problem("F0 B") == "'B' is neither F nor B with a micro-batch's number");
}

struct Walker {
  std::vector<PipelineStep> steps;
  std::size_t at = 0;
};

using Edge = std::pair<std::int64_t, bool>;  // the stage that sends activations over it; backward

// The messages of a call: (edge, whether it sends).
std::vector<std::pair<Edge, bool>> messages(const PipelineStep& step, std::int64_t stage,
                                            std::int64_t stages) {
  const std::int64_t before = (stage + stages - 1) % stages;
  std::vector<std::pair<Edge, bool>> out;
  if (step.send_forward) out.push_back({{stage, false}, true});
  if (step.recv_forward) out.push_back({{before, false}, false});
  if (step.send_backward) out.push_back({{before, true}, true});
  if (step.recv_backward) out.push_back({{stage, true}, false});
  return out;
}

// Every call waits until all of its messages have been met by the other side's call: the strictest
// that batch_isend_irecv can be. Returns how many messages were exchanged; -1 when all are stuck.
std::int64_t exchange(const PipelineShape& shape) {
  std::vector<Walker> walkers;
  for (std::int64_t s = 0; s < shape.stages; ++s) walkers.push_back({pipeline_schedule(shape, s)});
  std::map<std::pair<Edge, bool>, std::int64_t> posted;  // by edge and side
  std::map<std::int64_t, std::vector<std::pair<std::pair<Edge, bool>, std::int64_t>>> open;
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::int64_t s = 0; s < shape.stages; ++s) {
      Walker& walker = walkers[static_cast<std::size_t>(s)];
      if (walker.at == walker.steps.size()) continue;
      const PipelineStep& step = walker.steps[walker.at];
      if (step.action == PipelineAction::communicate && open[s].empty())
        for (const auto& message : messages(step, s, shape.stages)) {
          open[s].push_back({message, posted[message]++});
          moved = true;
        }
      const bool met = std::ranges::all_of(open[s], [&](const auto& message) {
        return posted[{message.first.first, !message.first.second}] > message.second;
      });
      if (!met) continue;
      open[s].clear();
      ++walker.at;
      moved = true;
    }
  }
  for (const Walker& walker : walkers)
    if (walker.at != walker.steps.size()) return -1;
  std::int64_t sum = 0;
  for (const auto& [side, count] : posted) {
    CHECK(count == posted[{side.first, !side.second}]);  // what is sent is received
    if (side.second) sum += count;
  }
  return sum;
}

// q v - 1 boundaries, crossed by every micro-batch both ways.
TEST_CASE("pipeline schedule: all messages meet, as many as there are boundaries") {
  for (const std::int64_t q : {2, 3, 4, 5})
    for (const std::int64_t v : {1, 2, 3})
      for (const std::int64_t groups : {1, 2, 3}) {
        const PipelineShape shape{q, v, groups * q, false};
        CAPTURE(q);
        CAPTURE(v);
        CAPTURE(groups);
        CHECK(exchange(shape) == 2 * (q * v - 1) * groups * q);
      }
}

}  // namespace
}  // namespace railyard::models
