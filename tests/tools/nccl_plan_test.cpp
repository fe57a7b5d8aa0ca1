// `railyard nccl plan` against NCCL's own decisions: every value of every file, from the `inputs`
// block alone.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tools/cli/nccl_command.h"

namespace fs = std::filesystem;
using nlohmann::json;
using namespace railyard;

namespace {

const fs::path kFolder = fs::path(RAILYARD_SHARED_DIR) / "reference/nccl-decisions";

struct Tally {
  std::size_t compared = 0;
  std::vector<std::string> different;
  void note(const std::string& where, const json& ours, const json& theirs) {
    different.push_back(fmt::format("{}: {}, NCCL {}", where, ours.dump(), theirs.dump()));
  }
};

// The files print floats with six or seven digits.
bool same_scalar(const json& ours, const json& theirs) {
  if (!theirs.is_number_float() && !ours.is_number_float()) return ours == theirs;
  if (!ours.is_number() || !theirs.is_number()) return false;
  constexpr double kDigits = 1e-5;
  return std::abs(ours.get<double>() - theirs.get<double>()) <=
         kDigits * std::max(1.0, std::abs(theirs.get<double>()));
}

void compare(const json& ours, const json& theirs, const std::string& where, Tally& tally) {
  if (theirs.is_object()) {
    for (const auto& [key, value] : theirs.items()) {
      const bool there = ours.is_object() && ours.contains(key);
      if (there) compare(ours[key], value, where + "." + key, tally);
      if (!there) tally.note(where + "." + key, nullptr, value);
    }
    return;
  }
  if (theirs.is_array()) {
    if (!ours.is_array() || ours.size() != theirs.size()) return tally.note(where, ours, theirs);
    for (std::size_t i = 0; i < theirs.size(); ++i)
      compare(ours[i], theirs[i], fmt::format("{}[{}]", where, i), tally);
    return;
  }
  ++tally.compared;
  if (!same_scalar(ours, theirs)) tally.note(where, ours, theirs);
}

std::vector<fs::path> decision_paths() {
  std::vector<fs::path> paths;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(kFolder, absent))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

json read(const fs::path& path) {
  std::ifstream stream(path);
  return json::parse(stream);
}

// The question alone, with its topology beside it.
fs::path stripped(const json& file, const fs::path& folder) {
  fs::create_directories(folder / "topo");
  const std::string topo = file["inputs"]["topo"];
  fs::copy_file(kFolder / "topo" / topo, folder / "topo" / topo,
                fs::copy_options::overwrite_existing);
  std::ofstream(folder / "question.json") << json{{"inputs", file["inputs"]}}.dump();
  return folder / "question.json";
}

}  // namespace

TEST_CASE("nccl plan: every value of NCCL's decisions, from their inputs alone") {
  const std::vector<fs::path> paths = decision_paths();
  if (paths.empty()) RAILYARD_SKIP("no reference/nccl-decisions");
  const fs::path folder = fs::temp_directory_path() / fmt::format("railyard-plan-{}", getpid());
  std::size_t compared = 0;
  std::size_t equal_files = 0;
  for (const fs::path& path : paths) {
    const json file = read(path);
    cli::NcclPlanArguments arguments;
    arguments.inputs = stripped(file, folder).string();
    arguments.json = true;
    const auto text = cli::nccl_plan_text(arguments);
    REQUIRE_MESSAGE(text.ok(), path.filename().string());
    json expected = file;
    expected.erase("inputs");
    Tally tally;
    compare(json::parse(text.value()), expected, "", tally);
    compared += tally.compared;
    equal_files += tally.different.empty() ? 1 : 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, tally.different.size()); ++i)
      std::printf("%s%s\n", path.stem().c_str(), tally.different[i].c_str());
    CHECK(tally.different.empty());
  }
  fs::remove_all(folder);
  std::printf("nccl plan: %zu of %zu files equal, %zu values compared\n", equal_files, paths.size(),
              compared);
}

TEST_CASE("nccl plan: exports are read back by the parts that read them") {
  if (decision_paths().empty()) RAILYARD_SKIP("no reference/nccl-decisions");
  cli::NcclPlanArguments arguments;
  arguments.topology = (kFolder / "topo/dgx_h100.xml").string();
  arguments.nodes = 4;
  arguments.exported = cli::PlanExport::tuner_csv;
  const auto csv = cli::nccl_plan_text(arguments);
  REQUIRE(csv.ok());
  const auto tuner = algorithms::nccl::parse_tuner_file(csv.value(), "tuner.csv");
  REQUIRE_MESSAGE(tuner.ok(), csv.value());
  // facts 1.11, 4 x 8 H100: Tree LL, Tree LL128 from 256 KiB, NVLSTree from 8 MiB, Ring at 1 GiB.
  std::vector<std::string> seen;
  for (const algorithms::nccl::TunerLine& line : tuner.value().lines) {
    if (line.function != algorithms::nccl::Function::all_reduce) continue;
    std::string pair =
        fmt::format("{}/{}", sim::to_text(line.algorithm), sim::to_text(line.protocol));
    if (seen.empty() || seen.back() != pair) seen.push_back(std::move(pair));
  }
  CHECK(seen ==
        std::vector<std::string>{"Tree/LL", "Tree/LL128", "NVLSTree/Simple", "Ring/Simple"});

  arguments.exported = cli::PlanExport::env;
  const auto env = cli::nccl_plan_text(arguments);
  REQUIRE(env.ok());
  CHECK(env.value().find("NCCL_ALGO=\"broadcast:ring;reduce:ring;allgather:ring;"
                         "reducescatter:ring;allreduce:nvlstree,ring,tree\"\n") !=
        std::string::npos);
  CHECK(env.value().find("NCCL_MAX_CTAS=16\n") != std::string::npos);
}

TEST_CASE("nccl plan: questions that cannot be answered name file and key") {
  const fs::path path = fs::temp_directory_path() / fmt::format("railyard-inputs-{}", getpid());
  const auto error = [&](const std::string& text) {
    std::ofstream(path) << text;
    cli::NcclPlanArguments arguments;
    arguments.inputs = path.string();
    const auto plan = cli::nccl_plan_text(arguments);
    REQUIRE_FALSE(plan.ok());
    std::string message = plan.error().text();
    const std::size_t at = message.find(path.string());
    return at == std::string::npos ? message : message.substr(at + path.string().size());
  };
  CHECK(error("[]") == ": an object with a map 'inputs' is expected");
  CHECK(error(R"({"inputs": {}})") == ": inputs: the key 'topo' is missing");
  CHECK(error(R"({"inputs": {"topo": "x.xml", "nodes": 0}})") ==
        ": inputs: nodes and hostsPerNvlinkDomain must be positive");
  CHECK(error(R"({"inputs": {"topo": "x.xml", "dtype": 12}})") ==
        ": inputs.dtype: NCCL's types are 0 to 11");
  CHECK(error(R"({"inputs": {"topo": "x.xml", "env": {"NCCL_ALGO": []}}})") ==
        ": inputs.env.NCCL_ALGO: a text or whole number is expected");
  fs::remove(path);

  cli::NcclPlanArguments arguments;
  arguments.topology = "nowhere.xml";
  CHECK_FALSE(cli::nccl_plan_text(arguments).ok());
  arguments.env = {"NCCL_ALGO"};
  CHECK(cli::nccl_plan_text(arguments).error().text() == "--env NCCL_ALGO: NAME=VALUE is expected");
}
