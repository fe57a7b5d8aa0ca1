#include "tools/cli/result_json.h"

#include "scenarios/training_result.h"
#include "sim/version.h"
#include "tools/cli/flow_statistics.h"
#include "tools/cli/format.h"
#include "tools/cli/json_parts.h"
#include "tools/cli/result_kv.h"

namespace railyard::cli {
namespace {

using scenarios::BucketRow;
using scenarios::CollectiveRow;
using scenarios::DdpResult;
using scenarios::FlowResult;
using scenarios::IdleLinks;
using scenarios::LinkRow;
using scenarios::RunResult;

Json byte_list(const std::vector<sim::Bytes>& sizes) {
  Json list = Json::array();
  for (const sim::Bytes size : sizes) list.push_back(size.raw());
  return list;
}

Json bucket_json(const BucketRow& bucket, std::size_t index) {
  return {{"index", index},
          {"size_bytes", bucket.size.raw()},
          {"sent_bytes", bucket.sent.raw()},
          {"parameters", bucket.parameters},
          {"ready_us", exact_us(bucket.ready)},
          {"start_us", exact_us(bucket.start)},
          {"end_us", exact_us(bucket.end)},
          {"algorithm", sim::to_text(bucket.algorithm)},
          {"protocol", sim::to_text(bucket.protocol)},
          {"channels", bucket.channels},
          {"busbw_gb_per_s", bucket.busbw},
          {"exposed_us", exact_us(bucket.exposed)}};
}

void add_step(Json& out, const scenarios::StepResult& step) {
  out["model"] = step.model;
  out["model_parameters"] = step.model_parameters;
  out["step_time_us"] = exact_us(step.step_time);
  out["samples_per_second"] = step.samples_per_second;
  out["bound_by"] = step.bound_by;
  out["compute_us"] = exact_us(step.compute);
  out["compute_alone_us"] = exact_us(step.compute_alone);
  out["forward_us"] = exact_us(step.forward);
  out["backward_us"] = exact_us(step.backward);
  out["after_backward_us"] = exact_us(step.after_backward);
  out["communication_us"] = exact_us(step.communication);
  out["exposed_communication_us"] = exact_us(step.exposed);
  Json iterations = Json::array();
  for (const sim::Duration iteration : step.iterations) iterations.push_back(exact_us(iteration));
  out["iterations_us"] = std::move(iterations);
}

Json call_json(const scenarios::CallRow& row) {
  return {{"collective", row.message ? "message" : sim::to_text(row.collective)},
          {"group", row.group},
          {"ranks", row.ranks},
          {"size_bytes", row.size.raw()},
          {"calls", row.count},
          {"algorithm", sim::to_text(row.algorithm)},
          {"protocol", sim::to_text(row.protocol)},
          {"sent_bytes_per_rank", row.sent.raw()},
          {"time_us", exact_us(row.time)},
          {"waited_us", exact_us(row.waited)},
          {"exposed_us", exact_us(row.exposed)},
          {"busbw_gb_per_s", row.busbw},
          {"first", row.example}};
}

void add_training(Json& out, const scenarios::TrainingResult& training) {
  out["scheme"] = training.scheme;
  add_step(out, training);
  out["tokens_per_second"] = training.samples_per_second * training.sequence_length;
  out["model_flops_per_second_per_gpu"] = training.flops_per_gpu;
  out["mfu"] = training.mfu;
  Json calls = Json::array();
  for (const scenarios::CallRow& row : training.calls) calls.push_back(call_json(row));
  out["calls"] = std::move(calls);
  Json stages = Json::array();
  for (const scenarios::StageRow& row : training.stages)
    stages.push_back({{"rank", row.rank},
                      {"kernels_us", exact_us(row.compute)},
                      {"waits_for_stages_us", exact_us(row.waited)},
                      {"other_exposed_us", exact_us(row.exposed)},
                      {"idle_us", exact_us(row.idle)}});
  if (!training.stages.empty()) out["stages"] = std::move(stages);
  Json memory;
  for (const scenarios::MemoryRow& row : training.memory) memory[row.what] = row.bytes;
  out["memory_bytes"] = std::move(memory);
}

void add_ddp(Json& out, const DdpResult& ddp) {
  add_step(out, ddp);
  out["exposing_bucket"] = ddp.exposing_bucket < 0 ? Json() : Json(ddp.exposing_bucket);
  out["rebuild_before_iteration"] =
      ddp.rebuild_before_iteration ? Json(*ddp.rebuild_before_iteration) : Json();
  Json by_iteration = Json::array();
  for (const auto& sizes : ddp.bucket_bytes) by_iteration.push_back(byte_list(sizes));
  out["buckets_bytes"] = by_iteration.empty() ? Json::array() : by_iteration.back();
  out["buckets_bytes_by_iteration"] = std::move(by_iteration);
  Json buckets = Json::array();
  for (std::size_t i = 0; i < ddp.buckets.size(); ++i)
    buckets.push_back(bucket_json(ddp.buckets[i], i));
  out["buckets"] = std::move(buckets);
}

Json collective_json(const CollectiveRow& row) {
  return {{"collective", sim::to_text(row.collective)},
          {"size_bytes", row.size.raw()},
          {"count", row.count},
          {"dtype", row.dtype},
          {"root", row.root},
          {"group", row.group},
          {"ranks", row.ranks},
          {"algorithm", sim::to_text(row.algorithm)},
          {"protocol", sim::to_text(row.protocol)},
          {"channels", row.channels},
          {"time_us", exact_us(row.time)},
          {"algbw_gb_per_s", row.algbw},
          {"busbw_gb_per_s", row.busbw},
          {"messages", row.messages}};
}

void add_collectives(Json& out, const std::vector<CollectiveRow>& rows) {
  Json list = Json::array();
  for (const CollectiveRow& row : rows) list.push_back(collective_json(row));
  out["collectives"] = std::move(list);
}

void add_flows(Json& out, const std::vector<FlowResult>& flows) {
  const FlowStatistics statistics = flow_statistics(flows);
  out["flow_statistics"] = {{"flows", statistics.flows},
                            {"bytes", statistics.bytes.raw()},
                            {"makespan_us", exact_us(statistics.makespan)},
                            {"mean_us", exact_us(statistics.mean)},
                            {"p50_us", exact_us(statistics.p50)},
                            {"p99_us", exact_us(statistics.p99)},
                            {"longest_us", exact_us(statistics.longest)}};
  Json list = Json::array();
  for (const FlowResult& flow : flows)
    list.push_back({{"from", flow.from},
                    {"to", flow.to},
                    {"size_bytes", flow.size.raw()},
                    {"start_us", exact_us(flow.start)},
                    {"end_us", exact_us(flow.end)}});
  out["flows"] = std::move(list);
}

void add_late(Json& out, const std::vector<scenarios::LateRank>& rows) {
  Json list = Json::array();
  for (const scenarios::LateRank& row : rows)
    list.push_back({{"rank", row.rank},
                    {"last_in", row.last_in},
                    {"calls", row.calls},
                    {"median_us", exact_us(row.median)},
                    {"worst_us", exact_us(row.worst)},
                    {"total_us", exact_us(row.total)},
                    {"cause", row.cause}});
  out["late_ranks"] = std::move(list);
}

void add_host(Json& out, const std::vector<scenarios::HostLoss>& rows) {
  Json list = Json::array();
  for (const scenarios::HostLoss& row : rows)
    list.push_back({{"what", row.what}, {"rank", row.rank}, {"total_us", exact_us(row.total)}});
  out["host_losses"] = std::move(list);
}

void add_links(Json& out, const RunResult& result) {
  Json busiest = Json::array();
  for (const LinkRow& link : result.busiest_links)
    busiest.push_back({{"name", link.name},
                       {"class", sim::to_text(link.link_class)},
                       {"bytes", link.bytes.raw()},
                       {"achievable_gb_per_s", exact_gb_per_s(link.rate)},
                       {"utilization", link.utilization}});
  Json idle = Json::array();
  for (const IdleLinks& links : result.idle_links)
    idle.push_back({{"class", sim::to_text(links.link_class)},
                    {"idle", links.count},
                    {"declared", links.total},
                    {"example", links.example}});
  out["busiest_links"] = std::move(busiest);
  out["idle_links"] = std::move(idle);
}

}  // namespace

void add_origin(Json& out, const scenarios::Scenario& scenario) {
  out["program_version"] = sim::kVersion;
  out["scenario"] = scenario.name;
  out["description"] = scenario.description;
  out["seed"] = scenario.seed;
  Json inputs = Json::array();
  for (const scenarios::SourceFile& file : scenario.inputs)
    inputs.push_back({{"path", file.path}, {"size_bytes", file.size}, {"fnv1a64", hex(file.hash)}});
  out["inputs"] = std::move(inputs);
  out["resolved_yaml"] = scenarios::resolved_yaml(scenario);
}

Json sensitivity_json(const std::vector<scenarios::SensitivityRow>& rows) {
  Json list = Json::array();
  for (const scenarios::SensitivityRow& row : rows)
    list.push_back({{"what", row.what},
                    {"change", row.change},
                    {"base_us", exact_us(row.base)},
                    {"varied_us", exact_us(row.varied)}});
  return list;
}

std::string_view outcome_name(const RunResult& result) {
  if (!result.unfinished.empty()) return "would hang";
  switch (result.outcome) {
    case sim::EventQueue::Outcome::drained: return "complete";
    case sim::EventQueue::Outcome::limit: return "limit";
    case sim::EventQueue::Outcome::interrupted: return "interrupted";
  }
  return "?";
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string result_json(const scenarios::Scenario& scenario, const RunResult& result) {
  Json out;
  out["railyard_result"] = kResultVersion;
  add_origin(out, scenario);
  out["machine"] = result.machine;
  out["profile"] = result.profile;
  out["ranks"] = result.ranks;
  out["nodes"] = result.nodes;
  out["outcome"] = outcome_name(result);
  out["duration_us"] = exact_us(result.duration);
  out["objective_us"] = exact_us(scenarios::objective_time(result));
  if (result.ddp) add_ddp(out, *result.ddp);
  if (result.training) add_training(out, *result.training);
  if (result.kv) add_kv(out, *result.kv);
  if (!result.collectives.empty()) add_collectives(out, result.collectives);
  if (!result.flows.empty()) add_flows(out, result.flows);
  if (!result.late_ranks.empty()) add_late(out, result.late_ranks);
  if (!result.host_losses.empty()) add_host(out, result.host_losses);
  add_links(out, result);
  out["sensitivity"] = sensitivity_json(result.sensitivity);
  out["notes"] = result.notes;
  out["unfinished"] = result.unfinished;
  out["counts"] = {{"messages", result.messages},
                   {"events", result.events},
                   {"solves", result.solves},
                   {"replays", result.replays}};
  out["trace_hash"] = hex(result.trace_hash);
  return dump(out);
}

}  // namespace railyard::cli
