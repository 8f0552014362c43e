#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "drivers/aws/api/query.h"
#include "drivers/aws/config/aws_config.h"

namespace nodepool::drivers::aws {

// Every launch template of Nodepool, of any provider, has a name that begins so.
inline constexpr const char* kTemplatePrefix = "nodepool-launch-template-";

// The root device of every template. The Python implementation names it so, whatever the image calls it.
inline constexpr const char* kTemplateDevice = "/dev/sda1";

// What the fleets of some labels have in common. Immutable: other data have another name (driver-aws.md 9.1).
struct LaunchTemplate {
  std::string name;
  boost::json::object data;  // LaunchTemplateData, as the API calls its members; null: not sent
};

LaunchTemplate TemplateOf(const AwsLabel& label, const AwsPool& pool, const std::string& provider);

// The call that makes it, with the tags by which it is found again.
Query CreateLaunchTemplate(const LaunchTemplate& wanted, const std::string& provider);

// Adds `value` and what is in it as parameters: lists lose the plural of their names and are numbered.
void AddStructure(const std::string& name, const boost::json::value& value, Query& query);

}  // namespace nodepool::drivers::aws
