// Collectives that other jobs run on the NICs of a serving cluster: each of `kv.beside` goes round
// and round through its sizes, on every group of its name, until the last request has ended.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "scenarios/kv_result.h"
#include "scenarios/kv_spec.h"
#include "scenarios/run_parts.h"

namespace railyard::scenarios {

class KvBeside {
 public:
  // `ended` says that no further call is to begin.
  static Result<std::unique_ptr<KvBeside>> make(RunContext& context,
                                                const std::vector<CollectiveRun>& runs,
                                                std::function<bool()> ended);
  virtual ~KvBeside() = default;
  virtual void start() = 0;
  // Adds the runners' counts to the context's result.
  virtual std::vector<KvBesideRow> rows() = 0;
};

}  // namespace railyard::scenarios
