#pragma once

#include <string>

#include "config/web_tokens.h"
#include "web/requests/request_body.h"

namespace nodepool::web {

// Puts what the token decides into the order: client, tenant, priority, requestor, number of nodes. Returns
// why the token does not allow what is asked for; empty: it does.
std::string ApplyToken(const config::WebToken& token, OrderBody& body);

}  // namespace nodepool::web
