#include "model/image.h"

#include <algorithm>

#include "base/text.h"
#include "model/json.h"
#include "model/record_reader.h"

namespace nodepool {
namespace {

namespace json = boost::json;

std::optional<ImageState> ParseBuildState(std::string_view text) {
  std::optional<ImageState> state = ParseImageState(text);
  return state == ImageState::kUploading ? std::nullopt : state;
}

std::optional<ImageState> ParseUploadState(std::string_view text) {
  std::optional<ImageState> state = ParseImageState(text);
  return state == ImageState::kBuilding ? std::nullopt : state;
}

// The three settings that both kinds carry from the disk image's configuration.
template <class Record>
void ReadImageSettings(RecordReader& reader, Record& record) {
  record.username = reader.TextOr("username", "zuul");
  record.python_path = reader.TextOr("python_path", "/usr/bin/python2");
  record.shell_type = reader.Text("shell_type");
}

template <class Record>
void WriteImageSettings(const Record& record, json::object& object) {
  object["username"] = ToValue(record.username);
  object["python_path"] = ToValue(record.python_path);
  object["shell_type"] = ToValue(record.shell_type);
}

}  // namespace

Expected<ImageBuild> ParseImageBuild(std::string_view json, WallTime now) {
  RecordReader reader(json);
  ImageBuild build;
  reader.State(build.state, build.state_time, &ParseBuildState, now);
  build.builder = reader.Text("builder");
  build.builder_id = reader.Text("builder_id");
  build.formats = Split(reader.Text("formats").value_or(""), ',');
  std::ranges::sort(build.formats);
  ReadImageSettings(reader, build);
  if (reader.error()) return std::unexpected(*reader.error());
  build.unknown = reader.TakeUnknown();
  return build;
}

std::string ToJson(const ImageBuild& build) {
  json::object record;
  if (build.state) record["state"] = ToString(*build.state);
  record["state_time"] = ToSeconds(build.state_time);
  if (build.builder) record["builder"] = *build.builder;
  if (build.builder_id) record["builder_id"] = *build.builder_id;
  if (!build.formats.empty()) {
    std::vector<std::string> formats = build.formats;
    std::ranges::sort(formats);
    record["formats"] = Join(formats, ",");
  }
  WriteImageSettings(build, record);
  AddUnknown(build.unknown, record);
  return WriteJson(record);
}

Expected<ImageUpload> ParseImageUpload(std::string_view json, WallTime now) {
  RecordReader reader(json);
  ImageUpload upload;
  reader.State(upload.state, upload.state_time, &ParseUploadState, now);
  upload.external_id = reader.Text("external_id");
  upload.external_name = reader.Text("external_name");
  upload.format = reader.Text("format");
  ReadImageSettings(reader, upload);
  if (reader.error()) return std::unexpected(*reader.error());
  upload.unknown = reader.TakeUnknown();
  return upload;
}

std::string ToJson(const ImageUpload& upload) {
  json::object record;
  if (upload.state) record["state"] = ToString(*upload.state);
  record["state_time"] = ToSeconds(upload.state_time);
  record["external_id"] = ToValue(upload.external_id);
  record["external_name"] = ToValue(upload.external_name);
  record["format"] = ToValue(upload.format);
  WriteImageSettings(upload, record);
  AddUnknown(upload.unknown, record);
  return WriteJson(record);
}

}  // namespace nodepool
