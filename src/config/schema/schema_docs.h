#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "config/schema/schema.h"

namespace nodepool::config {

// A Markdown table of every setting of a mapping, nested ones by their path
// (`pools[].labels[].name`): type, default, when a change takes effect, help.
std::string ToMarkdown(const Schema& schema);

// The schema as JSON Schema (draft 2020-12), for editors.
boost::json::object ToJsonSchema(const Schema& schema);

}  // namespace nodepool::config
