#pragma once

#include <vector>

#include "async/task.h"
#include "base/ids.h"
#include "base/log/logging.h"
#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// Adds one kind of a provider's resources to what is searched for leaks. A list that cannot be read is left
// out, with a warning that names it by `what`, so that the other kinds are searched all the same.
Task<> AppendListed(log::Logger logger, ProviderName provider, const char* what,
                    Task<std::vector<Resource>> list, std::vector<Resource>& resources);

}  // namespace nodepool::driver::cloud
