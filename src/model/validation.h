#pragma once

#include <optional>
#include <string_view>

#include "model/node.h"
#include "model/node_request.h"

// Before launchers may use an upload, the builder has a machine of it booted and checked (builder.md 10.8).
namespace nodepool {

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
