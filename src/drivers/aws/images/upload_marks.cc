#include "drivers/aws/images/upload_marks.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "driver/cloud/metadata.h"
#include "drivers/aws/config/tag_settings.h"

namespace nodepool::drivers::aws {

namespace {

constexpr std::string_view kUnfinished = "unfinished:";
constexpr std::size_t kMaxObjectTags = 10;

std::string TagText(const boost::json::value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get_bool() ? "True" : "False";
  return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value);
}

bool FitsS3(const std::string& text) {
  return std::ranges::all_of(text, [](char c) {
    bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_plain || std::string_view(" +-=._:/@").find(c) != std::string_view::npos;
  });
}

std::string TagIn(const std::map<std::string, std::string>& tags, const char* key) {
  auto found = tags.find(key);
  return found == tags.end() ? "" : found->second;
}

}  // namespace

bool UploadMarks::AreOn(const std::map<std::string, std::string>& tags) const {
  return TagIn(tags, driver::cloud::kProviderKey) == provider &&
         TagIn(tags, driver::cloud::kBuildKey) == build && TagIn(tags, driver::cloud::kUploadKey) == upload;
}

std::string UploadMarks::Token(const std::string& call) const {
  return Sha256Hex(call + "\n" + provider + "\n" + build + "\n" + upload);
}

UploadMarks MarksOf(const driver::ImageUploadParameters& upload) {
  std::map<std::string, std::string> tags = TagsOf(upload);
  UploadMarks marks;
  marks.provider = TagIn(tags, driver::cloud::kProviderKey);
  marks.build = TagIn(tags, driver::cloud::kBuildKey);
  marks.upload = TagIn(tags, driver::cloud::kUploadKey);
  marks.key = upload.name + "." + upload.format;
  if (marks.provider.empty() || marks.build.empty() || marks.upload.empty()) {
    throw Error(Verdict::kInvalid, "the upload has no provider, build and upload in its metadata");
  }
  return marks;
}

std::string UnfinishedId(const UploadMarks& marks) {
  return std::string(kUnfinished) + marks.build + ":" + marks.upload + ":" + marks.key;
}

std::optional<UploadMarks> ReadUnfinishedId(const std::string& external_id, const std::string& provider) {
  if (!external_id.starts_with(kUnfinished)) return std::nullopt;
  std::size_t build = kUnfinished.size();
  std::size_t upload = external_id.find(':', build);
  std::size_t key = upload == std::string::npos ? upload : external_id.find(':', upload + 1);
  if (key == std::string::npos) return std::nullopt;
  UploadMarks marks;
  marks.provider = provider;
  marks.build = external_id.substr(build, upload - build);
  marks.upload = external_id.substr(upload + 1, key - upload - 1);
  marks.key = external_id.substr(key + 1);
  bool is_whole = !marks.build.empty() && !marks.upload.empty() && !marks.key.empty();
  return is_whole ? std::optional(std::move(marks)) : std::nullopt;
}

std::map<std::string, std::string> TagsOf(const driver::ImageUploadParameters& upload) {
  std::map<std::string, std::string> tags;
  for (const auto& [key, value] : upload.metadata) {
    tags[CutToCharacters(key, kMaxTagKey)] = CutToCharacters(TagText(value), kMaxTagValue);
  }
  return tags;
}

std::map<std::string, std::string> ObjectTags(const std::map<std::string, std::string>& tags) {
  bool do_fit = tags.size() <= kMaxObjectTags && std::ranges::all_of(tags, [](const auto& tag) {
                  return FitsS3(tag.first) && FitsS3(tag.second);
                });
  if (do_fit) return tags;
  std::map<std::string, std::string> own;
  for (const char* key : {driver::cloud::kProviderKey, driver::cloud::kBuildKey, driver::cloud::kUploadKey}) {
    if (tags.contains(key)) own[key] = tags.at(key);
  }
  return own;
}

}  // namespace nodepool::drivers::aws
