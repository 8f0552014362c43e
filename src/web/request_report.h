#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <vector>

#include "launcher/wait_reasons.h"

namespace nodepool::web {

// Why a request waits, one object for each pool that was asked.
boost::json::array ToJson(const std::vector<launcher::WaitReason>& reasons);

// A request of GET /api/v1/requests:
//   id, state, age (seconds since it was made), labels, requestor, tenant, provider,
//   priority, event_id, nodes, declined_by,
//   accepted_by: {provider, pool} or null,
//   waits: [{provider, pool, reason, text, labels, missing: {pool: {}, provider: {}}}]
boost::json::object ToJson(const launcher::RequestStatus& status, WallTime now);

}  // namespace nodepool::web
