#pragma once

#include "drivers/aws/api/query.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

// The POST of a query to a service at `url`. It may be repeated: what creates something has a client token,
// the other calls read, get credentials, or say how things shall be.
net::HttpCall FormCall(const std::string& url, const Query& query, const char* version,
                       std::shared_ptr<const net::TlsSettings> tls);

}  // namespace nodepool::drivers::aws
