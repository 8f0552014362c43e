#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema/section.h"
#include "drivers/aws/config/aws_config.h"
#include "drivers/provider_section.h"

namespace nodepool::drivers::aws {

// AWS's limits of tags; lengths in characters.
inline constexpr std::size_t kMaxTags = 50;
inline constexpr std::size_t kMaxTagKey = 128;
inline constexpr std::size_t kMaxTagValue = 256;
// The tags that every instance and volume gets.
inline constexpr const char* kNameTag = "Name";
inline constexpr const char* kOwnTags[] = {"nodepool_node_id", "nodepool_pool_name", "nodepool_provider_name",
                                           kNameTag};

// The setting `key` of a section. Values that are not text are written as the Python implementation writes
// them
// ("True", "None"); keys that AWS refuses are left out. Each is a warning.
struct TagSettings {
  std::map<std::string, std::string> tags;
  std::vector<std::string> warnings;
};
TagSettings ReadTagSettings(const config::Section& section, std::string_view key);

// The first `limit` characters of UTF-8 text.
std::string CutToCharacters(std::string_view text, std::size_t limit);

// A provider's section of driver `aws` (driver-aws.md 2); strict validation agrees with the Python validator.
// The lists of a provider and of a pool are read by LoadAwsConfig.
const Bindings<AwsConfig>& AwsSettings();
const Bindings<AwsCloudImage>& AwsCloudImageSettings();
const Bindings<AwsDiskImage>& AwsDiskImageSettings();
const Bindings<AwsPool>& AwsPoolSettings();
const Bindings<AwsLabel>& AwsLabelSettings();

// The words of `import-method`.
const Words<ImportMethod>& ImportMethods();

const config::Schema& AwsSchema();

}  // namespace nodepool::drivers::aws
