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

// Says in which sweeps for leaks kinds of resources are searched for that the provider's configuration does
// not make, or no longer: in two of ten in a row, since two have to see what leaked.
class RareSweeps {
 public:
  // To be called once in each sweep.
  bool Begin() { return sweeps_++ % kOneIn < 2; }

 private:
  static constexpr int kOneIn = 10;
  int sweeps_ = 0;
};

// Whether images of the provider may be in the cloud: the builder uploads some, or has records of some.
bool MayHaveImages(const Framework& framework, const ProviderConfig& config);

}  // namespace nodepool::driver::cloud
