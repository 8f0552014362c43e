#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "config/web_tokens.h"
#include "launcher/leases/lease_desk.h"
#include "web/router.h"

namespace nodepool::web {

// What a client sends, read strictly (http-requests.md 3): an unknown key, a repeated one, or a wrong value
// is an Error(kInvalid) that names the key.

// Of POST /api/v1/requests. The client, its limits and the idempotency key are not set, and the priority only
// if it is sent.
struct OrderBody {
  launcher::LeaseOrder order;
  std::optional<int> priority;
};
Expected<OrderBody> ReadOrderBody(const Request& request);
JsonType OrderBodyType();

// Of POST /api/v1/requests/{id}/hold.
struct HoldBody {
  NodeId node;
  std::string reason;
  std::optional<std::int64_t> seconds;
};
Expected<HoldBody> ReadHoldBody(const Request& request);
JsonType HoldBodyType();

// The Idempotency-Key header; empty: there is none.
Expected<std::string> ReadIdempotencyKey(const Request& request);
// The parameter `wait`, in seconds.
Expected<Duration> ReadWait(const Request& request);

// Puts what the token decides into the order: client, tenant, priority, requestor, number of nodes. Returns
// why the token does not allow what is asked for; empty: it does.
std::string ApplyToken(const config::WebToken& token, OrderBody& body);

}  // namespace nodepool::web
