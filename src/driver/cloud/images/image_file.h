#pragma once

#include <memory>
#include <string>

#include "async/blocking_pool.h"
#include "async/task.h"
#include "base/sparse_file.h"

namespace nodepool::driver::cloud {

// The file of a build, opened on a thread of the pool. Error(kInvalid): it cannot be opened, or is empty.
Task<std::shared_ptr<const SparseFile>> OpenImageFile(BlockingPool& pool, std::string path);

// Such as a hole in a file reads; also if there are none.
bool IsAllZeros(const std::string& bytes);

}  // namespace nodepool::driver::cloud
