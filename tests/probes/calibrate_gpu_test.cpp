// tools/calibrate-gpu with stand-ins for nvidia-smi and for the probes: what it runs, what it
// packs.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/paths.h"
#include "tests/probes/support.h"

namespace fs = std::filesystem;
namespace tests = railyard::tests;

namespace {

// A folder that goes away, with programs in it.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/railyard-gpu-XXXXXX";
    if (mkdtemp(path) != nullptr) path_ = path;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return (path_ / name).string();
  }
  void add_program(const std::string& name, const std::string& script) const {
    std::ofstream(path(name)) << "#!/bin/bash\n" << script;
    fs::permissions(path(name), fs::perms::owner_all);
  }

 private:
  fs::path path_;
};

const char* const kSmi = R"(case $1 in
  --query-gpu=name) printf 'NVIDIA H200\nNVIDIA H200\n' ;;
  topo) echo 'GPU0 X NV18' ;;
esac
)";

// Writes its arguments as the value of --json.
const char* const kProbe = R"(args="$*"
while (($#)); do [[ $1 == --json ]] && file=$2; shift; done
[[ -z ${file:-} ]] || echo "{\"arguments\": \"$args\", \"dump\": \"${NCCL_TOPO_DUMP_FILE:-}\"}" >"$file"
)";

tests::ProgramRun calibrate(const Folder& folder, const std::string& arguments) {
  return tests::run_program("cd " + folder.path() + " && NVIDIA_SMI=" + folder.path("smi") + " " +
                            RAILYARD_SOURCE_DIR "/tools/calibrate-gpu --probes " + folder.path() +
                            " " + arguments);
}

}  // namespace

TEST_CASE("tools/calibrate-gpu packs what the probes found") {
  const Folder folder;
  folder.add_program("smi", kSmi);
  folder.add_program("probe_cuda", kProbe);
  folder.add_program("probe_nccl", kProbe);
  const tests::ProgramRun run = calibrate(folder, "--out found.tar.gz --nccl /x/libnccl.so.2");
  CAPTURE(run.output);
  CHECK(run.status == 0);
  CHECK(run.output.find("3 results in " + folder.path("found.tar.gz")) != std::string::npos);
  const tests::ProgramRun list = tests::run_program("tar -tzf " + folder.path("found.tar.gz"));
  for (const char* name : {"cuda.json", "nccl.json", "nccl-decisions.json", "smi-topo.txt",
                           "smi.csv", "versions.txt", "processors.txt"}) {
    CAPTURE(name);
    CHECK(list.output.find(name) != std::string::npos);
  }
  const tests::ProgramRun text = tests::run_program("tar -xOzf " + folder.path("found.tar.gz"));
  CHECK(text.output.find("GPU0 X NV18") != std::string::npos);
  CHECK(text.output.find("--nccl /x/libnccl.so.2 --budget") != std::string::npos);
  CHECK(text.output.find("nccl-topo.xml") != std::string::npos);
}

TEST_CASE("tools/calibrate-gpu goes on when a probe fails, and fails when all do") {
  const Folder folder;
  folder.add_program("smi", kSmi);
  folder.add_program("probe_cuda", "echo probe_cuda: no CUDA device >&2; exit 1\n");
  folder.add_program("probe_nccl", kProbe);
  const tests::ProgramRun partly = calibrate(folder, "--out partly.tar.gz");
  CAPTURE(partly.output);
  CHECK(partly.status == 0);
  CHECK(partly.output.find("cuda: status 1 after ") != std::string::npos);  // 0 or 1 s
  CHECK(partly.output.find(" s: probe_cuda: no CUDA device") != std::string::npos);
  CHECK(partly.output.find("2 results in ") != std::string::npos);

  folder.add_program("probe_nccl", "exit 1\n");
  const tests::ProgramRun none = calibrate(folder, "--out none.tar.gz");
  CHECK(none.status == 1);
  CHECK(none.output.find("error: no probe measured anything\n") != std::string::npos);
  CHECK_FALSE(fs::exists(folder.path("none.tar.gz")));
}

TEST_CASE("tools/calibrate-gpu's errors") {
  const Folder folder;
  CHECK(calibrate(folder, "").output ==
        "error: no " + folder.path("smi") + ": this host has no NVIDIA driver\n");
  folder.add_program("smi", "exit 9\n");
  CHECK(calibrate(folder, "").output == "error: " + folder.path("smi") + " finds no GPU\n");
  CHECK(calibrate(folder, "--out").output == "error: --out needs a value\n");
  CHECK(calibrate(folder, "--fast").output ==
        "error: unknown argument '--fast' (see tools/calibrate-gpu --help)\n");
}
