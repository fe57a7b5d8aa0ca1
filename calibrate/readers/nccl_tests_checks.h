// What an nccl-tests table does not say outright: which collective, of how many ranks; and whether
// its figures agree with each other. The rules are in nccl_tests.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/readers/log_text.h"
#include "calibrate/readers/nccl_tests.h"

namespace railyard::calibrate {

// Besides the table itself, what may tell its collective.
struct NcclTestsHints {
  std::string command;                    // program on a command line before it
  std::optional<sim::Collective> called;  // by NCCL's own lines
  std::string_view file_name;
};

// all_reduce_perf -> AllReduce; none for programs that run no collective of ours.
std::optional<sim::Collective> collective_of_program(std::string_view program);

// NCCL's version code as text: 22703 -> "2.27.3", 2708 -> "2.7.8".
std::string nccl_version_of_code(std::int64_t code);

// Bytes of an element of nccl-tests' type names; 0 for an unknown name.
std::int64_t nccl_tests_type_size(std::string_view type);

// Fills collective, rank_count, node_count, ... of a table whose rows are there.
void complete_nccl_tests(NcclTestsTable& table, const NcclTestsHints& hints, Notes& notes);

// Adds a note for everything that looks wrong.
void check_nccl_tests(const NcclTestsTable& table, Notes& notes);

}  // namespace railyard::calibrate
