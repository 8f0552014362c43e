#pragma once

#include <map>

#include "config/config.h"

namespace nodepool::driver {

// The section with a validation label (model/validation.h) in each pool for each image that is validated: a
// copy of the first label of the image, under another name. A section that is not as it should be, of which
// its driver says what is wrong, is left as it is.
config::ProviderSection WithValidationLabels(config::ProviderSection section,
                                             const std::map<ImageName, config::DiskImage>& images);

}  // namespace nodepool::driver
