// The decode functions of a scenario's blocks, for scenario.cpp. Each returns the first error of
// its block, placed in the file.
#pragma once

#include "scenarios/decode.h"
#include "scenarios/scenario.h"

namespace railyard::scenarios {

// decode_cluster.cpp
struct ClusterInput {
  topologies::ClusterSpec spec;
  std::vector<SourceFile> files;  // that the block named
};
Result<void> decode_cluster(const Place& place, bool read_files, ClusterInput& out);
Result<void> decode(const Place& place, topologies::FabricSpec& out);
Result<void> decode_ranks(const Place& place, topologies::PlacementSpec& out,
                          std::vector<NamedGroup>& groups);

// fabric_file.cpp: `kind` and the keys of an imported fabric, and the files they name.
void read_fabric_kind(MapReader& reader, topologies::FabricSpec& out);
Result<void> load_fabric(Scenario& scenario, const Document& document);
// Paths in the cluster's fabric that lead to the files from anywhere.
void make_fabric_paths_absolute(Node& root);

// decode_nccl.cpp
Result<void> decode_nccl(const Place& place, std::vector<NcclChoice>& choices, NcclSetup& setup);
Result<void> decode_env(const Place& place, NcclSetup& setup);

// decode_communication.cpp
Result<void> decode(const Place& place, CollectiveRun& out);
Result<void> decode(const Place& place, Traffic& out);
Result<void> decode(const Place& place, EngineOptions& out);

// decode_ddp.cpp
Result<void> decode(const Place& place, DdpSpec& out);
Result<void> decode(const Place& place, JoinInputs& out);
Result<void> decode(const Place& place, models::NetworkSpec& out);
Result<void> decode(const Place& place, models::Parameter& out);

// decode_training.cpp: a kernel's time alone, or {before: ..., time: ..., after: ...}.
Result<void> decode(const Place& place, models::MeasuredPass& out);
// read_training() of a scheme that calls batch_per_gpu by another name.
void read_training(MapReader& reader, TrainingSpec& out, std::string_view batch);

// explore.cpp
Result<void> decode(const Place& place, Exploration& out);
// Every value of every axis, put into the scenario alone, must give a scenario that can be read.
Result<void> check_axes(const Scenario& scenario);

// scenario.cpp: a document whose includes and sets are applied.
Result<Scenario> decode_scenario(std::shared_ptr<const Document> document, bool read_files);

}  // namespace railyard::scenarios
