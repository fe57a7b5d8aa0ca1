#include "algorithms/nccl/plan.h"

#include <fmt/format.h>

#include "algorithms/nccl/rules.h"

namespace railyard::algorithms::nccl {
namespace {

std::string describe_lists(const Environment& env) {
  std::string text;
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
    if (const auto value = env.text(name)) text += fmt::format("; {} is '{}'", name, *value);
  return text;
}

// What the example plugin writes over NCCL's constants when it starts.
void edit_as_plugin(TuningConstants& constants) {
  constants.tree_cap[kBlackwell][2] = 15;
  constants.ring_ll128_cap[kBlackwell][2] = 20;
  constants.hop_latency[kHopNet][index_of(Algorithm::nvls)][index_of(Protocol::simple)] = 24;
}

}  // namespace

sim::Result<CommPlan> make_comm_plan(const CommInputs& inputs, const Environment& env) {
  CommPlan plan;
  plan.inputs = inputs;
  RAILYARD_ASSIGN(plan.info, merge_nodes(inputs, env));
  plan.connections = connect(inputs, plan.info);
  RAILYARD_ASSIGN(const Lists lists, parse_lists(env));
  const ConstantsChoice choice = constants_for(inputs.version);
  TuningConstants constants = *choice.constants;
  if (inputs.tuner && inputs.tuner->reading == ChannelReading::as_shipped)
    edit_as_plugin(constants);
  plan.tuning = tune(plan.info, {constants, lists}, env);
  plan.lists_text = describe_lists(env);
  if (!choice.note.empty()) plan.notes.push_back(choice.note);
  std::string older = describe_launch_rules(inputs.version);
  if (!older.empty()) plan.notes.push_back(std::move(older));
  return plan;
}

}  // namespace railyard::algorithms::nccl
