#pragma once

#include "driver/cloud/adapter.h"

namespace nodepool::driver::cloud {

// Throws Error(kFail), naming the field, if an adapter's instance is impossible or must not get into a
// record: an id that is neither text nor an object, text that is not UTF-8, amounts that are negative or NaN.
void CheckInstance(const Instance& instance);

// The same for what an adapter lists: an entry that cannot be distinguished from others would be retained or
// deleted by mistake.
void CheckResource(const Resource& resource);

}  // namespace nodepool::driver::cloud
