#include "drivers/aws/compute/tag_parameters.h"

#include <fmt/format.h>

namespace nodepool::drivers::aws {

void AddTagSpecifications(const std::vector<std::string>& resources,
                          const std::map<std::string, std::string>& tags, Query& query) {
  int specification = 0;
  for (const std::string& resource : resources) {
    std::string prefix = fmt::format("TagSpecification.{}.", ++specification);
    query.Add(prefix + "ResourceType", resource);
    int number = 0;
    for (const auto& [key, value] : tags) {
      std::string tag = fmt::format("{}Tag.{}.", prefix, ++number);
      query.Add(tag + "Key", key);
      query.Add(tag + "Value", value);
    }
  }
}

}  // namespace nodepool::drivers::aws
