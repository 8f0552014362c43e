#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <vector>

#include "web/lists/recent_answers.h"
#include "web/router.h"

namespace nodepool::web {

// The OpenAPI 3.1 document of these endpoints.
boost::json::object OpenApi(const std::vector<Endpoint>& endpoints, const std::string& version);

// GET /api/v1/openapi.json, which describes the given endpoints and itself.
Endpoint OpenApiEndpoint(const std::vector<Endpoint>& endpoints, const std::string& version,
                         std::shared_ptr<RecentAnswers> recent);

// docs/reference/api.md.
std::string ApiReference(const std::vector<Endpoint>& endpoints);

}  // namespace nodepool::web
