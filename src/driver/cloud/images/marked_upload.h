#pragma once

#include <functional>
#include <string>

#include "async/loop.h"
#include "base/log/logging.h"
#include "driver/cloud/images/upload_marks.h"

namespace nodepool::driver::cloud {

// Removes what is not wanted any more, for at most 30 seconds. What fails is logged as an error that begins
// with `left`, which names what is left.
Task<> RemoveQuietly(Loop& loop, log::Logger logger, std::string left, Task<> removal);

// An upload to a cloud where everything that it makes carries its marks: announces first by which id another
// process finds and removes what an unfinished upload has made, then ends as `make()` does. On failure or
// cancellation `remove()` removes here everything with the marks. Both are called at most once, and what they
// refer to outlives the task.
Task<std::string> UploadMarked(Loop& loop, log::Logger logger, const ImageUploadParameters& upload,
                               UploadMarks marks, std::function<Task<std::string>()> make,
                               std::function<Task<>()> remove);

}  // namespace nodepool::driver::cloud
