#include "sim/collective.h"

namespace railyard::sim {

bool is_point_to_point(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::gather ||
         collective == Collective::scatter || collective == Collective::send_recv;
}

bool is_rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

Bytes nccl_tests_size(Collective collective, Bytes size, std::size_t ranks) {
  const bool per_rank = collective == Collective::all_gather ||
                        collective == Collective::reduce_scatter ||
                        collective == Collective::gather || collective == Collective::scatter;
  return per_rank ? size * static_cast<std::int64_t>(ranks) : size;
}

double bus_bandwidth_factor(Collective collective, std::size_t ranks) {
  const double n = static_cast<double>(ranks);
  switch (collective) {
    case Collective::all_reduce: return 2 * (n - 1) / n;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: return (n - 1) / n;
    case Collective::broadcast:
    case Collective::send_recv:
    case Collective::reduce: return 1;
  }
  RAILYARD_CHECK(false, "unknown collective");
}

}  // namespace railyard::sim
