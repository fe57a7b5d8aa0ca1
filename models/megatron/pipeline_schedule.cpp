#include "models/megatron/pipeline_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace railyard::models {
namespace {

PipelineStep forward(std::int64_t chunk, std::int64_t micro) {
  return {.action = PipelineAction::forward, .chunk = chunk, .micro_batch = micro};
}
PipelineStep backward(std::int64_t chunk, std::int64_t micro) {
  return {.action = PipelineAction::backward, .chunk = chunk, .micro_batch = micro};
}

class OneForwardOneBackward {
 public:
  OneForwardOneBackward(const PipelineShape& shape, std::int64_t stage)
      : shape_(shape), first_(stage == 0), last_(stage + 1 == shape.stages) {
    warm_up_ = std::min(shape.stages - stage - 1, shape.micro_batches);
  }

  std::vector<PipelineStep> steps() && {
    const std::int64_t steady = shape_.micro_batches - warm_up_;
    for (std::int64_t i = 0; i < warm_up_; ++i) {
      communicate({.recv_forward = !first_});
      out_.push_back(forward(0, i));
      communicate({.send_forward = !last_});
    }
    if (steady > 0) communicate({.recv_forward = !first_});
    for (std::int64_t i = 0; i < steady; ++i) {
      const bool end = i + 1 == steady;
      out_.push_back(forward(0, warm_up_ + i));
      communicate({.send_forward = !last_, .recv_backward = !last_});
      out_.push_back(backward(0, i));
      communicate({.recv_forward = !first_ && !end, .send_backward = !first_});
    }
    for (std::int64_t i = steady; i < shape_.micro_batches; ++i) {
      communicate({.recv_backward = !last_});
      out_.push_back(backward(0, i));
      communicate({.send_backward = !first_});
    }
    return std::move(out_);
  }

 private:
  void communicate(PipelineStep step) {
    step.action = PipelineAction::communicate;
    if (step.any_message()) out_.push_back(step);
  }

  PipelineShape shape_;
  bool first_;
  bool last_;
  std::int64_t warm_up_ = 0;
  std::vector<PipelineStep> out_;
};

class Interleaved {
 public:
  Interleaved(const PipelineShape& shape, std::int64_t stage)
      : shape_(shape), first_(stage == 0), last_(stage + 1 == shape.stages) {
    total_ = shape.micro_batches * shape.chunks;
    const std::int64_t q = shape.stages;
    warm_up_ = std::min((q - stage - 1) * 2 + (shape.chunks - 1) * q, total_);
    all_in_warm_up_ = warm_up_ == total_;
  }

  std::vector<PipelineStep> steps() && {
    communicate({.recv_forward = !first_});
    for (std::int64_t k = 0; k < warm_up_; ++k) warm_up(k);
    for (std::int64_t k = 0; k < total_ - warm_up_; ++k) steady(k);
    cool_down();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::int64_t chunk_of(std::int64_t k, bool is_forward) const {
    const std::int64_t chunk = k % (shape_.stages * shape_.chunks) / shape_.stages;
    return is_forward ? chunk : shape_.chunks - 1 - chunk;
  }
  [[nodiscard]] std::int64_t micro_batch_of(std::int64_t k) const {
    const std::int64_t group = shape_.stages * shape_.chunks;
    return k / group * shape_.stages + k % shape_.stages;
  }

  // Whether the tensor of step k + 1 comes from the neighbour: recv_tensor_from_previous_stage().
  // The leading stage (the first in forward) gets back what it sent q - 1 steps ago.
  [[nodiscard]] bool receives(std::int64_t k, bool is_forward) const {
    if (is_forward ? !first_ : !last_) return true;
    if (k < shape_.stages - 1) return false;
    const std::int64_t last_chunk = is_forward ? shape_.chunks - 1 : 0;
    return chunk_of(k - (shape_.stages - 1), is_forward) != last_chunk;
  }
  [[nodiscard]] bool sends_forward(std::int64_t k) const {
    return !(last_ && chunk_of(k, true) == shape_.chunks - 1);
  }
  [[nodiscard]] bool sends_backward(std::int64_t k) const {
    return !(first_ && chunk_of(k, false) == 0);
  }

  void warm_up(std::int64_t k) {
    const bool end = k + 1 == warm_up_;
    if (shape_.overlap_p2p) wait(false);
    add_forward(k);
    PipelineStep step{.send_forward = sends_forward(k),
                      .recv_forward = k + 1 < total_ && receives(k, true)};
    const bool first_gradient = end && !all_in_warm_up_ && !last_;
    if (!shape_.overlap_p2p) {
      step.recv_backward = first_gradient;
      return communicate(step);
    }
    overlap(step, false);
    overlap({.recv_backward = first_gradient}, true);
  }

  void steady(std::int64_t k) {
    const std::int64_t forward_k = k + warm_up_;
    const bool end = forward_k + 1 == total_;
    PipelineStep there{.send_forward = sends_forward(forward_k),
                       .recv_forward = !end && receives(forward_k, true)};
    PipelineStep back{.send_backward = sends_backward(k), .recv_backward = receives(k, false)};
    if (shape_.overlap_p2p) {
      wait(false);
      add_forward(forward_k);
      overlap(there, false);
      wait(true);
      add_backward(k);
      return overlap(back, true);
    }
    add_forward(forward_k);
    add_backward(k);
    there.send_backward = back.send_backward;
    there.recv_backward = back.recv_backward;
    communicate(there);
  }

  void cool_down() {
    if (all_in_warm_up_) {
      if (shape_.overlap_p2p) wait(false);
      communicate({.recv_backward = !last_});
    }
    for (std::int64_t k = total_ - warm_up_; k < total_; ++k) {
      if (shape_.overlap_p2p) wait(true);
      add_backward(k);
      const PipelineStep step{.send_backward = sends_backward(k),
                              .recv_backward = k + 1 < total_ && receives(k, false)};
      if (shape_.overlap_p2p)
        overlap(step, true);
      else
        communicate(step);
    }
    if (!shape_.overlap_p2p) return;
    wait(false);
    wait(true);
  }

  void add_forward(std::int64_t k) {
    out_.push_back(forward(chunk_of(k, true), micro_batch_of(k)));
  }
  void add_backward(std::int64_t k) {
    out_.push_back(backward(chunk_of(k, false), micro_batch_of(k)));
  }
  void communicate(PipelineStep step) {
    step.action = PipelineAction::communicate;
    if (step.any_message()) out_.push_back(step);
  }
  void overlap(PipelineStep step, bool of_backward) {
    step.overlapped = true;
    step.of_backward = of_backward;
    communicate(step);
  }
  void wait(bool of_backward) {
    out_.push_back({.action = PipelineAction::wait, .of_backward = of_backward});
  }

  PipelineShape shape_;
  bool first_;
  bool last_;
  std::int64_t total_ = 0;
  std::int64_t warm_up_ = 0;
  bool all_in_warm_up_ = false;
  std::vector<PipelineStep> out_;
};

sim::Result<PipelineStep> action_of(const std::string& word) {
  PipelineStep step;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data() + 1, end, step.micro_batch);
  const bool known = word.front() == 'F' || word.front() == 'B';
  if (!known || parsed.ec != std::errc() || parsed.ptr != end || step.micro_batch < 0)
    return sim::bad_input(fmt::format("'{}' is neither F nor B with a micro-batch's number", word));
  if (word.front() == 'B') step.action = PipelineAction::backward;
  return step;
}

// Every micro-batch once forward, then once backward.
sim::Result<void> check_actions(const std::vector<PipelineStep>& actions, std::int64_t m) {
  std::vector<int> done(static_cast<std::size_t>(m), 0);
  for (const PipelineStep& step : actions) {
    const bool is_forward = step.action == PipelineAction::forward;
    const char* name = is_forward ? "F" : "B";
    if (step.micro_batch >= m)
      return sim::bad_input(
          fmt::format("{}{}: there are {} micro-batches", name, step.micro_batch, m));
    int& state = done[static_cast<std::size_t>(step.micro_batch)];
    if (state != (is_forward ? 0 : 1))
      return sim::bad_input(
          fmt::format("{}{}: {}", name, step.micro_batch,
                      state == 0 ? "its forward has not run" : "it stands twice"));
    ++state;
  }
  const auto missing = std::ranges::find_if(done, [](int state) { return state != 2; });
  if (missing == done.end()) return {};
  return sim::bad_input(
      fmt::format("{}{} is missing", *missing == 0 ? "F" : "B", missing - done.begin()));
}

}  // namespace

sim::Result<std::vector<PipelineStep>> stated_schedule(const PipelineShape& shape,
                                                       std::int64_t stage,
                                                       const std::string& order) {
  std::vector<PipelineStep> actions;
  std::istringstream words(order);
  for (std::string word; words >> word;) {
    RAILYARD_ASSIGN(const PipelineStep step, action_of(word));
    actions.push_back(step);
  }
  RAILYARD_TRY(check_actions(actions, shape.micro_batches));
  const bool first = stage == 0;
  const bool last = stage + 1 == shape.stages;
  std::vector<PipelineStep> out;
  PipelineStep call{.action = PipelineAction::communicate};
  for (const PipelineStep& action : actions) {
    const bool is_forward = action.action == PipelineAction::forward;
    (is_forward ? call.recv_forward : call.recv_backward) = is_forward ? !first : !last;
    if (call.any_message()) out.push_back(call);
    out.push_back(action);
    call = {.action = PipelineAction::communicate};
    (is_forward ? call.send_forward : call.send_backward) = is_forward ? !last : !first;
  }
  if (call.any_message()) out.push_back(call);
  return out;
}

std::vector<PipelineStep> pipeline_schedule(const PipelineShape& shape, std::int64_t stage) {
  if (shape.stages > 1 && shape.chunks > 1) return Interleaved(shape, stage).steps();
  if (shape.stages > 1) return OneForwardOneBackward(shape, stage).steps();
  std::vector<PipelineStep> out;
  for (std::int64_t i = 0; i < shape.micro_batches; ++i) {
    out.push_back(forward(0, i));
    out.push_back(backward(0, i));
  }
  return out;
}

}  // namespace railyard::models
