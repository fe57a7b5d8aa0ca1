#include "tools/cli/schedule_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "algorithms/custom/custom_schedule.h"
#include "tools/cli/exit_status.h"

namespace railyard::cli {

using algorithms::CustomProof;
using algorithms::CustomSchedule;
using sim::Result;

namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return sim::bad_input("cannot be read", path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string proved_text(const CustomSchedule& custom, const CustomProof& proof) {
  std::string collectives;
  for (const sim::Collective collective : proof.proved)
    collectives += (collectives.empty() ? "" : ", ") + std::string(to_text(collective));
  std::string text = fmt::format("{}: proved to be {} of {} ranks{}\n", custom.file, collectives,
                                 custom.ranks, custom.in_place ? ", in place" : "");
  text += fmt::format(
      "  {} chunks, {}; {} blocks; {} operations and {} messages for one portion of every chunk\n",
      custom.chunks, to_text(custom.protocol), custom.blocks.size(), proof.slices, proof.messages);
  return text;
}

}  // namespace

Result<std::string> schedule_check_text(const ScheduleArguments& arguments) {
  RAILYARD_ASSIGN(const std::string text, read_file(arguments.file));
  RAILYARD_ASSIGN(const CustomSchedule custom,
                  algorithms::read_custom_schedule(arguments.file, text));
  const CustomProof proof = algorithms::prove_custom(custom);
  if (proof.proved.empty()) return sim::bad_input(proof.problem, arguments.file);
  return proved_text(custom, proof);
}

int schedule_command(const ScheduleArguments& arguments) {
  const Result<std::string> text = schedule_check_text(arguments);
  if (!text.ok()) return fail(text.error());
  std::fwrite(text.value().data(), 1, text.value().size(), stdout);
  return finish_output(kDone);
}

}  // namespace railyard::cli
