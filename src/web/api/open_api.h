#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "async/loop.h"
#include "web/router.h"

namespace nodepool::web {

// The OpenAPI 3.1 document of these endpoints.
boost::json::object OpenApi(const std::vector<Endpoint>& endpoints, const std::string& version);

// GET /api/v1/openapi.json, which describes the given endpoints and itself. The loop outlives it.
Endpoint OpenApiEndpoint(const std::vector<Endpoint>& endpoints, const std::string& version, Loop& loop);

// The endpoints below /api/ in Markdown, for build/docs/reference/api.md.
std::string ApiReference(const std::vector<Endpoint>& endpoints);

}  // namespace nodepool::web
