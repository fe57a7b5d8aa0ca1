#include "algorithms/nccl/names.h"

#include <fmt/format.h>

#include <charconv>

namespace railyard::algorithms::nccl {

std::string to_text(Version version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

sim::Result<Version> parse_version(const std::string& text) {
  std::array<std::int32_t, 3> parts{};
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (count < parts.size()) {
    const auto [next, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc{} || parts[count] < 0) break;
    ++count;
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  if (count < 2 || at != end || text.back() == '.')
    return sim::bad_input(
        fmt::format("'{}' is no NCCL version (expected like 2.30.7 or 2.30)", text));
  return Version{parts[0], parts[1], parts[2]};
}

std::int64_t size_of(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8e4m3:
    case DataType::float8e5m2: return 1;
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64: break;
  }
  return 8;
}

sim::Result<Function> function_of(sim::Collective collective) {
  switch (collective) {
    case sim::Collective::all_reduce: return Function::all_reduce;
    case sim::Collective::all_gather: return Function::all_gather;
    case sim::Collective::reduce_scatter: return Function::reduce_scatter;
    case sim::Collective::broadcast: return Function::broadcast;
    case sim::Collective::reduce: return Function::reduce;
    case sim::Collective::all_to_all:
    case sim::Collective::gather:
    case sim::Collective::scatter:
    case sim::Collective::send_recv: break;
  }
  return sim::bad_input("NCCL chooses no algorithm for " + std::string(sim::to_text(collective)) +
                        ": it is sends and receives");
}

}  // namespace railyard::algorithms::nccl
