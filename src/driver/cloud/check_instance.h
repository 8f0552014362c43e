#pragma once

#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// Throws Error(kFail), naming the field, when the instance that an adapter made cannot be
// the truth or must not get into a record: an id that is neither text nor an object, text
// that is not UTF-8, amounts that are negative or no numbers.
void CheckInstance(const Instance& instance);

// The same for what an adapter lists: an entry that cannot be told from others would be
// kept or deleted by mistake.
void CheckResource(const Resource& resource);

}  // namespace nodepool::driver::cloud
