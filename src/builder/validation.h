#pragma once

#include <functional>
#include <optional>
#include <string>

#include "builder/context.h"

namespace nodepool::builder {

// An upload that is to be validated, and how.
struct Validation {
  store::UploadKey upload;
  std::string external_id;  // of the image in the cloud; the upload's record has it
  config::ImageValidation settings;
  LabelName label;  // under which a pool of the provider boots it
  // Notes how far it has come, for operators.
  std::function<Task<>(std::string)> note;
};

// The label under which a pool of the provider boots the image for validation; nullopt: no pool does, or
// only such as are disabled.
std::optional<LabelName> ValidationLabelOf(const driver::ProviderConfig& provider, const ImageName& image);

// Has a machine of the upload booted by a launcher and runs the check (builder.md 10.8); ends when the
// machine was given back. Throws why the upload must not be used, or Error(kTimedOut). The context outlives
// it.
Task<> Validate(Context& context, log::Logger logger, Validation validation);

}  // namespace nodepool::builder
