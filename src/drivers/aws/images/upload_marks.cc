#include "drivers/aws/images/upload_marks.h"

#include <fmt/format.h>

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
constexpr std::size_t kMarkInKey = 12;

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
         TagIn(tags, driver::cloud::kBuildKey) == build && TagIn(tags, driver::cloud::kUploadKey) == upload &&
         TagIn(tags, driver::cloud::kAttemptKey) == attempt;
}

std::string UploadMarks::Token(const std::string& call) const {
  return Sha256Hex(call + "\n" + provider + "\n" + build + "\n" + upload + "\n" + attempt);
}

UploadMarks MarksOf(const driver::ImageUploadParameters& upload) {
  std::map<std::string, std::string> tags = TagsOf(upload);
  UploadMarks marks;
  marks.provider = TagIn(tags, driver::cloud::kProviderKey);
  marks.build = TagIn(tags, driver::cloud::kBuildKey);
  marks.upload = TagIn(tags, driver::cloud::kUploadKey);
  marks.attempt = TagIn(tags, driver::cloud::kAttemptKey);
  marks.key = fmt::format("{}-{}-{}.{}", upload.image->name, marks.upload,
                          marks.attempt.substr(0, kMarkInKey), upload.format);
  if (marks.provider.empty() || marks.build.empty() || marks.upload.empty() || marks.attempt.empty()) {
    throw Error(Verdict::kInvalid, "the upload has no provider, build, upload and attempt in its metadata");
  }
  return marks;
}

std::string UnfinishedId(const UploadMarks& marks) {
  return fmt::format("{}{}:{}:{}:{}", kUnfinished, marks.build, marks.upload, marks.attempt, marks.key);
}

std::optional<UploadMarks> ReadUnfinishedId(const std::string& external_id, const std::string& provider) {
  if (!external_id.starts_with(kUnfinished)) return std::nullopt;
  UploadMarks marks;
  marks.provider = provider;
  std::size_t begin = kUnfinished.size();
  for (std::string UploadMarks::*part : {&UploadMarks::build, &UploadMarks::upload, &UploadMarks::attempt}) {
    std::size_t end = external_id.find(':', begin);
    if (end == std::string::npos || end == begin) return std::nullopt;
    marks.*part = external_id.substr(begin, end - begin);
    begin = end + 1;
  }
  marks.key = external_id.substr(begin);
  return marks.key.empty() ? std::nullopt : std::optional(std::move(marks));
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
  for (const char* key : {driver::cloud::kProviderKey, driver::cloud::kBuildKey, driver::cloud::kUploadKey,
                          driver::cloud::kAttemptKey}) {
    if (tags.contains(key)) own[key] = tags.at(key);
  }
  return own;
}

}  // namespace nodepool::drivers::aws
