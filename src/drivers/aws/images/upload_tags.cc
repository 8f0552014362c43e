#include "drivers/aws/images/upload_tags.h"

#include <algorithm>
#include <string_view>

#include "driver/cloud/metadata.h"
#include "drivers/aws/config/tag_settings.h"

namespace nodepool::drivers::aws {

namespace {

constexpr std::size_t kMaxObjectTags = 10;

bool FitsS3(const std::string& text) {
  return std::ranges::all_of(text, [](char c) {
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_plain || std::string_view(" +-=._:/@").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::map<std::string, std::string> TagsOf(const driver::ImageUploadParameters& upload) {
  std::map<std::string, std::string> tags;
  for (const auto& [key, value] : driver::cloud::TextMetadata(upload)) {
    tags[CutToCharacters(key, kMaxTagKey)] = CutToCharacters(value, kMaxTagValue);
  }
  return tags;
}

std::map<std::string, std::string> ObjectTags(const std::map<std::string, std::string>& tags) {
  bool do_fit = tags.size() <= kMaxObjectTags && std::ranges::all_of(tags, [](const auto& tag) {
                  return FitsS3(tag.first) && FitsS3(tag.second);
                });
  if (do_fit) return tags;
  std::map<std::string, std::string> own;
  for (const char* key : {driver::cloud::kProviderKey, driver::cloud::kBuildKey, driver::cloud::kUploadKey,
                          driver::cloud::kAttemptKey}) {
    if (tags.contains(key)) own[key] = tags.at(key);
  }
  return own;
}

}  // namespace nodepool::drivers::aws
