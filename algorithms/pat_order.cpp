#include "algorithms/pat_order.h"

#include <bit>

#include "algorithms/shape.h"

namespace railyard::algorithms {
namespace {

using sim::MessagePart;

std::uint32_t lowest_bit(std::uint32_t distance) {
  return static_cast<std::uint32_t>(std::countr_zero(distance));
}

MessagePart part(std::uint32_t index, std::uint32_t ahead, bool more) {
  return {static_cast<std::uint16_t>(index), static_cast<std::uint8_t>(ahead), more};
}

class AllGatherOrder {
 public:
  explicit AllGatherOrder(const PatShape& shape) : shape_(shape) {}

  std::vector<PatStep> run() {
    for (std::uint32_t scale = shape_.spread / 2; scale > 0; scale /= 2) far(scale);
    for (std::uint32_t top = shape_.delta / 2; top > 0; top /= 2) walk(top, top);
    return std::move(steps_);
  }

 private:
  // `low`, then what lies below it in the tree of lowest set bits, the farthest first.
  void walk(std::uint32_t low, std::uint32_t bit) {
    pass_on(low);
    if (low % 2 == 1) take(low);
    for (bit /= 2; bit > 0; bit /= 2) walk(low + bit, bit);
  }

  // The a-th block of a message is its last: it is full, or the next would be out of range.
  [[nodiscard]] bool closes(std::uint32_t a, std::uint64_t next_distance) const {
    return a % shape_.aggregate == shape_.aggregate - 1 || next_distance >= shape_.ranks;
  }

  void far(std::uint32_t scale) {
    const std::uint32_t unit = scale * shape_.delta;
    for (std::uint32_t a = 0; (2 * a + 1) * unit < shape_.ranks && a < shape_.spread / (2 * scale);
         ++a) {
      PatStep step;
      step.distance = 2 * a * unit;
      step.send_dimension = static_cast<std::int32_t>(lowest_bit(unit));
      step.send = part(a % shape_.aggregate, 0, !closes(a, std::uint64_t{2 * a + 3} * unit));
      if (step.distance > 0) look_at(step, step.distance);
      steps_.push_back(step);
    }
  }

  // Reads the block in the message that brought it and leaves it there.
  void look_at(PatStep& step, std::uint32_t distance) const {
    const std::uint32_t dimension = lowest_bit(distance);
    const std::uint32_t nth = distance >> (dimension + 1);  // of the blocks that came this way
    step.recv_dimension = static_cast<std::int32_t>(dimension);
    step.recv = part(nth % shape_.aggregate, nth / shape_.aggregate, true);
  }

  void pass_on(std::uint32_t low) {
    const std::uint32_t dimension = lowest_bit(low);
    for (std::uint32_t a = 0; a < shape_.spread; ++a) {
      const std::uint32_t to = a * shape_.delta + low;
      const std::uint32_t from = to - (1U << dimension);
      PatStep step;
      step.distance = from;
      if (to < shape_.ranks) {
        const bool last = closes(a, std::uint64_t{a + 1} * shape_.delta + low);
        step.send_dimension = static_cast<std::int32_t>(dimension);
        step.send = part(a % shape_.aggregate, 0, !last);
      } else if (dimension > 0 || from >= shape_.ranks) {
        continue;
      }
      if (from > 0) receive(step, low, a);
      steps_.push_back(step);
    }
  }

  // Dimension 0 is the last use of a block, so its messages are consumed in order; the others look.
  void receive(PatStep& step, std::uint32_t low, std::uint32_t a) const {
    const std::uint32_t dimension = lowest_bit(low);
    if (low == 1U << dimension) {  // one of the far blocks
      look_at(step, step.distance);
      if (dimension > 0) return;
      const std::uint32_t nth = step.distance >> (step.recv_dimension + 1);
      const std::uint64_t next = (std::uint64_t{nth + 1} * 2 + 1) << step.recv_dimension;
      step.recv = part(step.recv.index, 0, !closes(nth, next));
      return;
    }
    step.recv_dimension = static_cast<std::int32_t>(lowest_bit(step.distance));
    const bool last = closes(a, std::uint64_t{a + 1} * shape_.delta + low - 1);
    if (dimension == 0)
      step.recv = part(a % shape_.aggregate, 0, !last);
    else
      step.recv = part(a % shape_.aggregate, a / shape_.aggregate, true);
  }

  void take(std::uint32_t low) {
    for (std::uint32_t a = 0; a < shape_.spread; ++a) {
      PatStep step;
      step.distance = a * shape_.delta + low;
      if (step.distance >= shape_.ranks) return;
      const bool last = closes(a, std::uint64_t{a + 1} * shape_.delta + low);
      step.recv_dimension = 0;
      step.recv = part(a % shape_.aggregate, 0, !last);
      steps_.push_back(step);
    }
  }

  PatShape shape_;
  std::vector<PatStep> steps_;
};

class ReduceScatterOrder {
 public:
  explicit ReduceScatterOrder(const PatShape& shape) : shape_(shape) {}

  std::vector<PatStep> run() {
    for (std::uint32_t low = shape_.delta - 1; low > 0; --low) {
      if (low % 2 == 1) send_own(low);
      if (low > 1) add_near(low);
    }
    for (std::uint32_t scale = 1; scale < shape_.spread; scale *= 2) {
      send_far(scale);
      add_far(scale);
    }
    PatStep own;
    own.recv_dimension = 0;
    own.recv = part((shape_.spread - 1) % shape_.aggregate, 0, false);
    steps_.push_back(own);
    return std::move(steps_);
  }

 private:
  // The bits of `count - 1 - a` in reverse: the order in which AllGather would meet them,
  // backwards.
  static std::uint32_t reversed(std::uint32_t a, std::uint32_t count) {
    std::uint32_t result = 0;
    for (std::uint32_t bit = 1; bit < count; bit *= 2)
      if ((a & bit) == 0) result += count / (2 * bit);
    return result;
  }

  [[nodiscard]] bool fills(std::uint32_t nth) const { return (nth + 1) % shape_.aggregate == 0; }

  void send_own(std::uint32_t low) {
    for (std::uint32_t a = 0; a < shape_.spread; ++a) {
      PatStep step;
      step.distance = reversed(a, shape_.spread) * shape_.delta + low;
      step.send_dimension = 0;
      step.send = part(a % shape_.aggregate, 0, !fills(a) && a + 1 < shape_.spread);
      if (step.distance < shape_.ranks) steps_.push_back(step);
    }
  }

  // Several messages are open where sums wait for dimension 0; `place` walks through their parts.
  struct Place {
    std::uint32_t first = 0;  // the a at which the messages of this dimension began
    std::uint32_t ahead = 0;
  };
  void step_past(Place& place, std::uint32_t a) const {
    if (fills(a - place.first)) ++place.ahead;
  }

  // The blocks a = count - 2^k begin messages of another dimension.
  static bool begins_dimension(std::uint32_t a, std::uint32_t count) {
    return std::has_single_bit(count - a);
  }

  void add_near(std::uint32_t low) {
    const std::uint32_t dimension = lowest_bit(low);
    const bool far_next = low == 1U << dimension;
    Place place;
    for (std::uint32_t a = 0; a < shape_.spread; ++a) {
      const std::uint32_t from = reversed(a, shape_.spread) * shape_.delta + low;
      const bool last = fills(a) || a + 1 == shape_.spread;
      PatStep step;
      step.distance = from - (1U << dimension);
      if (far_next && begins_dimension(a, shape_.spread)) place = {a, 0};
      const std::uint32_t nth = a - place.first;
      set_send(step, part(nth % shape_.aggregate, place.ahead, dimension > 0 || !last));
      if (from < shape_.ranks) {
        step.recv_dimension = static_cast<std::int32_t>(dimension);
        step.recv = part(a % shape_.aggregate, 0, !last);
      }
      if (dimension > 0 && step.distance < shape_.ranks) step_past(place, a);
      if (from < shape_.ranks || (dimension == 0 && step.distance < shape_.ranks))
        steps_.push_back(step);
    }
  }

  // The sum for distance 0 stays here.
  static void set_send(PatStep& step, MessagePart send) {
    if (step.distance == 0) return;
    step.send_dimension = static_cast<std::int32_t>(lowest_bit(step.distance));
    step.send = send;
  }

  // What came in on dimension 0 completes the sums for far ranks, which go out.
  void send_far(std::uint32_t scale) {
    const std::uint32_t count = shape_.spread / (2 * scale);
    for (std::uint32_t a = 0; a < count; ++a) {
      PatStep step;
      step.distance = (2 * reversed(a, count) + 1) * scale * shape_.delta;
      if (step.distance >= shape_.ranks) continue;
      set_send(step, part(a % shape_.aggregate, 0, !fills(a) && a + 1 < count));
      if (step.distance + 1 < shape_.ranks) {
        const std::uint32_t nth = a + shape_.spread - shape_.spread / scale;
        step.recv_dimension = 0;
        step.recv = part(nth % shape_.aggregate, 0, !fills(nth));
      }
      steps_.push_back(step);
    }
  }

  void add_far(std::uint32_t scale) {
    const std::uint32_t count = shape_.spread / (2 * scale);
    Place place;
    for (std::uint32_t a = 0; a < count; ++a) {
      const std::uint32_t from = (2 * reversed(a, count) + 1) * scale * shape_.delta;
      const std::uint32_t dimension = lowest_bit(from);
      PatStep step;
      step.distance = from - (1U << dimension);
      if (begins_dimension(a, count)) place = {a, 0};
      set_send(step, part((a - place.first) % shape_.aggregate, place.ahead, true));
      if (step.distance < shape_.ranks) step_past(place, a);
      if (from >= shape_.ranks) continue;
      step.recv_dimension = static_cast<std::int32_t>(dimension);
      step.recv = part(a % shape_.aggregate, 0, !fills(a) && a + 1 < count);
      steps_.push_back(step);
    }
  }

  PatShape shape_;
  std::vector<PatStep> steps_;
};

}  // namespace

std::uint32_t pat_dimensions(std::uint32_t ranks) { return log2_floor(power_of_two_up(ranks)); }

PatShape pat_shape(std::uint32_t ranks, sim::Bytes chunk, sim::Bytes part, std::uint32_t steps) {
  PatShape shape;
  shape.ranks = ranks;
  while (chunk.raw() / (part.raw() * shape.aggregate) >= 2 && shape.aggregate < ranks / 2)
    shape.aggregate *= 2;
  shape.spread = shape.aggregate;
  for (; steps > 1 && shape.spread < ranks / 2; steps /= 2) shape.spread *= 2;
  shape.delta = power_of_two_up(ranks) / shape.spread;
  return shape;
}

std::vector<PatStep> pat_all_gather_order(const PatShape& shape) {
  return AllGatherOrder(shape).run();
}

std::vector<PatStep> pat_reduce_scatter_order(const PatShape& shape) {
  return ReduceScatterOrder(shape).run();
}

}  // namespace railyard::algorithms
