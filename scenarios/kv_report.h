// From the times of requests to what an inference team asks for.
#pragma once

#include "models/kv/serving.h"
#include "scenarios/kv_result.h"

namespace railyard::scenarios {

// Rows, quantiles (nearest rank), rates and pools; the rest of the result is left as it is.
void report_serving(const models::Serving& serving, const models::KvTransfers& transfers,
                    KvResult& out);

}  // namespace railyard::scenarios
