#include "model/image.h"

#include <algorithm>
#include <boost/json/value.hpp>

#include "base/json_fields.h"
#include "base/text.h"
#include "model/record_fields.h"

namespace nodepool {

namespace {

std::optional<ImageState> ParseBuildState(std::string_view text) {
  std::optional<ImageState> state = ParseImageState(text);
  return state == ImageState::kUploading ? std::nullopt : state;
}

std::optional<ImageState> ParseUploadState(std::string_view text) {
  std::optional<ImageState> state = ParseImageState(text);
  return state == ImageState::kBuilding ? std::nullopt : state;
}

// Sorted, joined by commas.
struct FormatsCodec {
  static constexpr std::string_view kExpected = "a text or null";
  static Reading Read(std::string_view written, std::vector<std::string>& formats) {
    std::optional<std::string> text;
    Reading reading = codec::ReadText(written, text);
    formats = Split(text.value_or(""), ',');
    std::ranges::sort(formats);
    return reading;
  }
  static void Write(std::string& out, std::vector<std::string> formats) {
    std::ranges::sort(formats);
    AppendJsonText(out, Join(formats, ","), JsonStyle::kPython);
  }
  static bool IsUnset(const std::vector<std::string>& formats) { return formats.empty(); }
};

// The three settings that both kinds carry from the disk image's configuration.
template <class Fields, class T>
void EachImageSetting(Fields& fields, T& record) {
  fields("username", record.username);
  fields("python_path", record.python_path);
  fields("shell_type", record.shell_type);
}

}  // namespace

template <class Fields, RecordOf<ImageBuild> T>
void EachField(Fields& fields, T& build) {
  fields("state", build.state, StateCodec<&ParseBuildState>());
  fields("state_time", build.state_time);
  fields("builder", build.builder, OmittedWhenUnset());
  fields("builder_id", build.builder_id, OmittedWhenUnset());
  fields("formats", build.formats, FormatsCodec());
  EachImageSetting(fields, build);
  fields("error", build.error, OmittedWhenUnset());
}

template <class Fields, RecordOf<ImageUpload> T>
void EachField(Fields& fields, T& upload) {
  fields("state", upload.state, StateCodec<&ParseUploadState>());
  fields("state_time", upload.state_time);
  fields("external_id", upload.external_id);
  fields("external_name", upload.external_name);
  fields("format", upload.format);
  EachImageSetting(fields, upload);
  fields("progress", upload.progress, OmittedWhenUnset());
  fields("error", upload.error, OmittedWhenUnset());
}

Expected<ImageBuild> ParseImageBuild(std::string_view json, WallTime now) {
  ImageBuild build;
  build.state_time = now;
  return ReadRecord(json, std::move(build));
}

std::string ToJson(const ImageBuild& build) { return WriteRecord(build); }

Expected<ImageUpload> ParseImageUpload(std::string_view json, WallTime now) {
  ImageUpload upload;
  upload.state_time = now;
  return ReadRecord(json, std::move(upload));
}

std::string ToJson(const ImageUpload& upload) { return WriteRecord(upload); }

namespace {

namespace json = boost::json;

constexpr std::string_view kBuildKey = "build";
constexpr std::string_view kUploadKey = "upload";

}  // namespace

LabelName ValidationLabel(const LabelName& label) {
  return LabelName("nodepool-validation-of-" + label.value);
}

bool IsForValidation(const Node& node) { return std::ranges::any_of(node.type, &IsValidationLabel); }

NodeRequest ValidationRequest(LabelName label, ProviderName provider, const UploadToValidate& upload,
                              WallTime now) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, now);
  request.created_time = now;
  request.node_types = {std::move(label)};
  request.provider = std::move(provider);
  request.reuse = false;
  request.requestor = std::string(kValidationRequestor);
  request.requestor_data =
      json::value(json::object{{kBuildKey, upload.build.value}, {kUploadKey, upload.upload.value}});
  return request;
}

std::optional<UploadToValidate> UploadToValidateBy(const NodeRequest& request) {
  if (request.requestor != kValidationRequestor) return std::nullopt;
  json::value data = request.requestor_data.value();
  const json::object* object = data.if_object();
  if (object == nullptr) return std::nullopt;
  UploadToValidate upload{BuildId(TextIn(*object, kBuildKey)), UploadId(TextIn(*object, kUploadKey))};
  if (upload.build.empty() || upload.upload.empty()) return std::nullopt;
  return upload;
}

}  // namespace nodepool
