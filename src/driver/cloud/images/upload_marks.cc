#include "driver/cloud/images/upload_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <string_view>

#include "base/digest.h"
#include "base/error.h"
#include "base/find_or_empty.h"
#include "driver/cloud/metadata.h"

namespace nodepool::driver::cloud {

namespace {

constexpr std::string_view kUnfinished = "unfinished:";
constexpr std::size_t kMarkInKey = 12;

std::string ValueText(const boost::json::value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get_bool() ? "True" : "False";
  return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value);
}

}  // namespace

bool UploadMarks::AreOn(const std::map<std::string, std::string>& metadata) const {
  return FindOrEmpty(metadata, kProviderKey) == provider && FindOrEmpty(metadata, kBuildKey) == build &&
         FindOrEmpty(metadata, kUploadKey) == upload && FindOrEmpty(metadata, kAttemptKey) == attempt;
}

std::string UploadMarks::Token(const std::string& call) const {
  return Sha256Hex(call + "\n" + provider + "\n" + build + "\n" + upload + "\n" + attempt);
}

std::map<std::string, std::string> TextMetadata(const ImageUploadParameters& upload) {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : upload.metadata) metadata[std::string(key)] = ValueText(value);
  return metadata;
}

UploadMarks MarksOf(const ImageUploadParameters& upload, const std::string& format) {
  std::map<std::string, std::string> metadata = TextMetadata(upload);
  UploadMarks marks;
  marks.provider = FindOrEmpty(metadata, kProviderKey);
  marks.build = FindOrEmpty(metadata, kBuildKey);
  marks.upload = FindOrEmpty(metadata, kUploadKey);
  marks.attempt = FindOrEmpty(metadata, kAttemptKey);
  marks.key = fmt::format("{}-{}-{}.{}", upload.image->name, marks.upload,
                          marks.attempt.substr(0, kMarkInKey), format);
  if (marks.provider.empty() || marks.build.empty() || marks.upload.empty() || marks.attempt.empty()) {
    throw Error(Verdict::kInvalid, "the upload has no provider, build, upload and attempt in its metadata");
  }
  return marks;
}

bool IsKeyOf(const std::string& key, const ImageName& image) {
  if (!key.starts_with(image.str() + "-")) return false;
  std::string_view rest = std::string_view(key).substr(image.str().size() + 1);
  auto take = [&rest](std::string_view characters) {
    std::size_t length = std::min(rest.find_first_not_of(characters), rest.size());
    rest.remove_prefix(length);
    return length > 0;
  };
  if (!take("0123456789")) return false;
  if (rest.starts_with('-')) {
    rest.remove_prefix(1);
    if (!take("0123456789abcdef")) return false;
  }
  bool is_one_word = rest.find_first_of("./", 1) == std::string_view::npos || rest == ".tar.gz";
  return rest.size() > 1 && rest.front() == '.' && is_one_word;
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

}  // namespace nodepool::driver::cloud
