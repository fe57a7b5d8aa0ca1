// A measured run: one nccl-tests sweep (or the like) of one platform, in the YAML form of the
// reference set. A prediction may use `platform`, `nccl`, `env`, `collective` and `datatype` only;
// the rest says where the figures come from.
//
//   RAILYARD_ASSIGN(const MeasuredRun run, read_measured_run(path));
//   run.rows[0].size, run.rows[0].time_us
//
// Sizes are nccl-tests' "size" column (AllGather and ReduceScatter: the total over the ranks).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/result.h"
#include "sim/units.h"

namespace railyard::calibrate {

// Words as the file has them; an empty string and an empty optional are the file's null.
struct MeasuredPlatform {
  std::string name;
  std::string machine;
  std::optional<std::int64_t> nodes;
  std::optional<std::int64_t> gpus_per_node;
  std::string processes;  // per-gpu, per-node
  std::string threads;    // per-gpu: a per-node process launches like per-gpu ones
  std::string intra;      // nvswitch, nvlink-direct, nvlink-bridge, pcie-host, shm, none
  std::optional<std::int64_t> nics_per_node;
  std::string nic_rate;      // "200 Gb/s"
  std::string nic_measured;  // what the NIC reaches by other tools
  std::string fabric;        // infiniband, roce, efa, slingshot, tcp-ethernet, ...
  std::string transport;     // rdma-gdr, rdma-host, tcp, none
  std::string nccl_used;     // version
  std::string library;       // nccl, gloo
  bool predictable = false;
  std::string why_not;
  std::vector<std::string> spread;   // what is deliberately abnormal
  std::vector<std::string> assumed;  // fields that the source does not state
  std::optional<std::int64_t> nvlink_domain_gpus;
};

struct MeasuredRow {
  sim::Bytes size;
  double time_us = 0;
};

struct MeasuredRun {
  std::string id;
  MeasuredPlatform platform;
  std::string nccl;
  std::string collective;
  std::string datatype;
  std::vector<std::pair<std::string, std::string>> env;
  std::string status;                      // healthy, degraded, fault, odd
  std::vector<MeasuredRow> rows;           // out of place, ascending sizes
  std::vector<MeasuredRow> rows_in_place;  // ascending sizes
  std::string path;                        // of the file
  std::vector<std::string> notes;          // rows without a time, sizes that go down
};

// Errors name the file, the line and the key. O(file).
sim::Result<MeasuredRun> read_measured_run(const std::string& path);
sim::Result<MeasuredRun> measured_run_from_text(std::string_view text, const std::string& name);

// The files of a folder whose names, without .yaml, match the pattern (* and ?; empty: all).
sim::Result<std::vector<std::string>> measured_run_files(const std::string& folder,
                                                         std::string_view pattern);

}  // namespace railyard::calibrate
