// NCCL's own names and numbers of functions, algorithms, protocols, data types and reductions. The
// enumerators stand in NCCL's order, so that a value is an index into every table here, in a tuner
// plugin's cost table and in the log.
//
// sim::Algorithm names what this program can run; this one names what NCCL can choose.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/collective.h"
#include "sim/enum_table.h"

namespace railyard::algorithms::nccl {

using sim::Protocol;  // LL, LL128, Simple; `plain` is not NCCL's

enum class Function { broadcast, reduce, all_gather, reduce_scatter, all_reduce };
enum class Algorithm { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
inline constexpr std::size_t kFunctions = 5;
inline constexpr std::size_t kAlgorithms = 7;
inline constexpr std::size_t kProtocols = 3;
inline constexpr std::array kAllFunctions{Function::broadcast, Function::reduce,
                                          Function::all_gather, Function::reduce_scatter,
                                          Function::all_reduce};
inline constexpr std::array kAllAlgorithms{Algorithm::tree,
                                           Algorithm::ring,
                                           Algorithm::collnet_direct,
                                           Algorithm::collnet_chain,
                                           Algorithm::nvls,
                                           Algorithm::nvls_tree,
                                           Algorithm::pat};
inline constexpr std::array kAllProtocols{Protocol::ll, Protocol::ll128, Protocol::simple};

enum class DataType {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  bfloat16,
  float8e4m3,
  float8e5m2
};
// As the caller names them; avg and premul_sum are sums to the network and to NVLS' support test.
enum class Reduction { sum, prod, max, min, avg, premul_sum };

struct Version {
  std::int32_t major = 2;
  std::int32_t minor = 30;
  std::int32_t patch = 7;
  auto operator<=>(const Version&) const = default;
};
inline constexpr Version kNewestVersion{2, 30, 7};
std::string to_text(Version version);                         // "2.30.7"
sim::Result<Version> parse_version(const std::string& text);  // "2.18.3", "2.30"

template <typename E>
constexpr std::size_t index_of(E value) {
  return static_cast<std::size_t>(value);
}

// Values by [algorithm][protocol], and those by [function] as well.
template <typename T>
using PerAlgorithm = std::array<std::array<T, kProtocols>, kAlgorithms>;
template <typename T>
using PerFunction = std::array<PerAlgorithm<T>, kFunctions>;

constexpr bool is_collnet(Algorithm algorithm) {
  return algorithm == Algorithm::collnet_direct || algorithm == Algorithm::collnet_chain;
}
constexpr bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
}
// AllGather and ReduceScatter: a count is one rank's, the message n times that.
constexpr bool is_gather_or_scatter(Function function) {
  return function == Function::all_gather || function == Function::reduce_scatter;
}

std::int64_t size_of(DataType type);
// AllToAll is no function of NCCL's chooser: error.
sim::Result<Function> function_of(sim::Collective collective);

}  // namespace railyard::algorithms::nccl

namespace railyard::sim {

template <>
struct EnumTable<algorithms::nccl::Function> {
  using Function = algorithms::nccl::Function;
  static constexpr std::string_view kind = "function";
  static constexpr std::array entries{EnumEntry{Function::broadcast, "Broadcast"},
                                      EnumEntry{Function::reduce, "Reduce"},
                                      EnumEntry{Function::all_gather, "AllGather"},
                                      EnumEntry{Function::reduce_scatter, "ReduceScatter"},
                                      EnumEntry{Function::all_reduce, "AllReduce"}};
};

template <>
struct EnumTable<algorithms::nccl::Algorithm> {
  using Algorithm = algorithms::nccl::Algorithm;
  static constexpr std::string_view kind = "algorithm";
  static constexpr std::array entries{EnumEntry{Algorithm::tree, "Tree"},
                                      EnumEntry{Algorithm::ring, "Ring"},
                                      EnumEntry{Algorithm::collnet_direct, "CollNetDirect"},
                                      EnumEntry{Algorithm::collnet_chain, "CollNetChain"},
                                      EnumEntry{Algorithm::nvls, "NVLS"},
                                      EnumEntry{Algorithm::nvls_tree, "NVLSTree"},
                                      EnumEntry{Algorithm::pat, "PAT"}};
};

template <>
struct EnumTable<algorithms::nccl::DataType> {
  using DataType = algorithms::nccl::DataType;
  static constexpr std::string_view kind = "data type";
  static constexpr std::array entries{EnumEntry{DataType::int8, "int8"},
                                      EnumEntry{DataType::uint8, "uint8"},
                                      EnumEntry{DataType::int32, "int32"},
                                      EnumEntry{DataType::uint32, "uint32"},
                                      EnumEntry{DataType::int64, "int64"},
                                      EnumEntry{DataType::uint64, "uint64"},
                                      EnumEntry{DataType::float16, "float16"},
                                      EnumEntry{DataType::float32, "float32"},
                                      EnumEntry{DataType::float64, "float64"},
                                      EnumEntry{DataType::bfloat16, "bfloat16"},
                                      EnumEntry{DataType::float8e4m3, "float8e4m3"},
                                      EnumEntry{DataType::float8e5m2, "float8e5m2"}};
};

template <>
struct EnumTable<algorithms::nccl::Reduction> {
  using Reduction = algorithms::nccl::Reduction;
  static constexpr std::string_view kind = "reduction";
  static constexpr std::array entries{
      EnumEntry{Reduction::sum, "sum"}, EnumEntry{Reduction::prod, "prod"},
      EnumEntry{Reduction::max, "max"}, EnumEntry{Reduction::min, "min"},
      EnumEntry{Reduction::avg, "avg"}, EnumEntry{Reduction::premul_sum, "premul_sum"}};
};

}  // namespace railyard::sim
