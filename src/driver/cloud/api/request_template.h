#pragma once

#include <string>

#include "base/error.h"
#include "base/ids.h"
#include "model/node_request.h"

namespace nodepool::driver::cloud::api {

// Metadata of a machine made from its request: text with fields of the request in braces, as in Python's
// format strings: "{request.tenant_name}", "{request.requestor_data[key]}", "{{" for a brace
// (driver-openstack.md 7.4). Error(kInvalid): a broken template, or a field that does not exist.
std::string FillTemplate(const std::string& text, const RequestId& id, const NodeRequest& request);

}  // namespace nodepool::driver::cloud::api
