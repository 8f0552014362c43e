#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "model/job.h"
#include "operate/nodes.h"
#include "web/router.h"

namespace nodepool::web {

// What an operator sends with an action, read strictly (http-actions.md 2): an unknown key, a repeated one, a
// wrong value or a parameter that there is not is an Error(kInvalid) that names it. Every body may be left
// out.

// Of POST /api/v1/nodes/{id}/hold.
Expected<operate::HoldOrder> ReadHoldOrder(const Request& request);
JsonType HoldOrderType();

// Of POST /api/v1/providers/{provider}/pause.
struct PauseOrder {
  std::optional<std::string> reason;
  bool is_drained = false;
};
Expected<PauseOrder> ReadPauseOrder(const Request& request);
JsonType PauseOrderType();

// Of POST /api/v1/jobs, whose body has to be there.
Expected<JobRule> ReadJobRule(const Request& request);
JsonType JobRuleType();

// Of the other actions, which take nothing.
Expected<void> ReadNothing(const Request& request);

// The parameter `force`, true or false.
Expected<bool> ReadForce(const Request& request);

}  // namespace nodepool::web
