#include "calibrate/probes/nccl/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "calibrate/probes/common/error.h"

namespace railyard::probe::nccl {
namespace {

std::vector<std::string> candidates(const std::string& path) {
  if (!path.empty()) return {path};
  std::vector<std::string> names = {"libnccl.so.2"};
  if (const char* home = std::getenv("NCCL_HOME"); home != nullptr)
    names.insert(names.begin(), std::string(home) + "/lib/libnccl.so.2");
  names.emplace_back("/usr/local/cuda/lib64/libnccl.so.2");
  return names;
}

template <typename Function>
void find(void* library, const char* name, Function& function, bool needed = true) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && needed)
    throw ProbeError(std::string("the NCCL library has no ") + name);
}

void find_all(void* library, Api& api) {
  int (*get_version)(int*) = nullptr;
  find(library, "ncclGetVersion", get_version);
  find(library, "ncclGetUniqueId", api.get_unique_id);
  find(library, "ncclCommInitRank", api.init_rank);
  find(library, "ncclCommInitAll", api.init_all);
  find(library, "ncclCommDestroy", api.destroy);
  find(library, "ncclCommAbort", api.abort);
  find(library, "ncclGroupStart", api.group_start);
  find(library, "ncclGroupEnd", api.group_end);
  find(library, "ncclGroupSimulateEnd", api.simulate_end, false);
  find(library, "ncclAllReduce", api.all_reduce);
  find(library, "ncclAllGather", api.all_gather);
  find(library, "ncclReduceScatter", api.reduce_scatter);
  find(library, "ncclBroadcast", api.broadcast);
  find(library, "ncclSend", api.send);
  find(library, "ncclRecv", api.receive);
  find(library, "ncclGetErrorString", api.error_text);
  find(library, "ncclGetLastError", api.last_error, false);
  api.check(get_version(&api.version), "ncclGetVersion");
}

}  // namespace

void Api::check(int status, const char* what) const {
  if (status == kSuccess) return;
  std::string text = std::string(what) + ": " + error_text(status);
  const char* words = last_error == nullptr ? nullptr : last_error(nullptr);
  if (words != nullptr && *words != '\0') text += std::string(": ") + words;
  for (char& character : text)
    if (character == '\n') character = ' ';
  throw ProbeError(text);
}

Api load(const std::string& path) {
  std::string reasons;
  for (const std::string& name : candidates(path)) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = dlerror();
      reasons += (reasons.empty() ? "" : "; ") + std::string(reason == nullptr ? name : reason);
      continue;
    }
    Api api;  // the library stays loaded to the end: NCCL's threads outlive its communicators
    api.path = name;
    find_all(library, api);
    return api;
  }
  throw ProbeError("NCCL cannot be loaded (--nccl PATH, NCCL_HOME): " + reasons);
}

std::string version_text(int version) {
  // 2.9 and later are coded major * 10000 + minor * 100 + patch, earlier ones with 1000.
  const int scale = version >= 10000 ? 10000 : 1000;
  return std::to_string(version / scale) + "." + std::to_string(version % scale / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace railyard::probe::nccl
