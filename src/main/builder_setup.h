#pragma once

#include <string>

#include "base/random.h"
#include "builder/builder.h"
#include "cli/builder_options.h"

namespace nodepool {

// Who the builder in this process is and what its command line asks of it. Makes the
// builder's id in `images_dir` where there is none. Error(kInvalid) when that fails.
builder::Builder::Options BuilderSetup(const cli::BuilderOptions& options, const std::string& images_dir,
                                       Random& random);

}  // namespace nodepool
