#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/node.h"
#include "model/node_request.h"
#include "model/raw_json.h"

namespace nodepool {

// A disk image build (coordination.md 4.5). Image name and build id are in the path.
struct ImageBuild {
  std::optional<ImageState> state;
  WallTime state_time{};
  std::optional<std::string> builder;     // omitted on the wire when unset
  std::optional<std::string> builder_id;  // omitted on the wire when unset
  std::vector<std::string> formats;       // sorted; omitted on the wire when empty
  std::optional<std::string> username = "zuul";
  std::optional<std::string> python_path = "/usr/bin/python2";
  std::optional<std::string> shell_type;
  // Why it failed, one line; not in Python's records, whose programs ignore it; omitted on the wire when
  // unset.
  std::optional<std::string> error;
  Foreign foreign;
};

// An upload of a build to one provider (coordination.md 4.6).
struct ImageUpload {
  std::optional<ImageState> state;
  WallTime state_time{};
  std::optional<std::string> external_id;
  std::optional<std::string> external_name;
  std::optional<std::string> format;
  std::optional<std::string> username = "zuul";
  std::optional<std::string> python_path = "/usr/bin/python2";
  std::optional<std::string> shell_type;
  // How far it has come while it is `uploading`: "sending the file, 40 %"; omitted on the wire when unset.
  std::optional<std::string> progress;
  std::optional<std::string> error;  // as of a build
  Foreign foreign;
};

Expected<ImageBuild> ParseImageBuild(std::string_view json, WallTime now);
Expected<ImageUpload> ParseImageUpload(std::string_view json, WallTime now);
std::string ToJson(const ImageBuild& build);
std::string ToJson(const ImageUpload& upload);

// Before launchers may use an upload, the builder has a machine of it booted and checked (builder.md 10.8).

inline constexpr std::string_view kValidationRequestor = "NodePool:validation";

// The label under which a pool that boots an image by `label` boots uploads of it that are to be validated.
LabelName ValidationLabel(const LabelName& label);
// Nodes of such a label are for the builder that requests them, and for nobody else.
inline bool IsValidationLabel(const LabelName& label) {
  return label.value.starts_with("nodepool-validation-of-");
}

bool IsForValidation(const Node& node);

// An upload, of an image and to a provider that are known.
struct UploadToValidate {
  BuildId build;
  UploadId upload;
};

// Asks for a machine of the upload; `label` is a validation label.
NodeRequest ValidationRequest(LabelName label, ProviderName provider, const UploadToValidate& upload,
                              WallTime now);
// nullopt: it is no such request, or does not say of which upload.
std::optional<UploadToValidate> UploadToValidateBy(const NodeRequest& request);

}  // namespace nodepool
