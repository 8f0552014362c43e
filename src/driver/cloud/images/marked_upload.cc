#include "driver/cloud/images/marked_upload.h"

#include "async/attempt.h"
#include "async/cleanup.h"
#include "async/deadline.h"

namespace nodepool::driver::cloud {

namespace {

constexpr Duration kRemoveLimit = std::chrono::seconds(30);

}  // namespace

Task<> RemoveQuietly(Loop& loop, log::Logger logger, std::string left, Task<> removal) {
  SteadyTime deadline = loop.SteadyNow() + kRemoveLimit;
  Outcome<> removed = co_await Attempt(WithDeadline(loop, deadline, "the removal", std::move(removal)));
  if (!removed) logger.Error("{}: {}", left, removed.error().message());
}

Task<std::string> UploadMarked(Loop& loop, log::Logger logger, const ImageUploadParameters& upload,
                               UploadMarks marks, std::function<Task<std::string>()> make,
                               std::function<Task<>()> remove) {
  Task<> announcement = upload.announce(UnfinishedId(marks));
  co_await std::move(announcement);
  std::string left =
      "Something of the failed upload of " + marks.key + " is left and will be found as leaked";
  auto clean_up = [&](const Failure&) { return RemoveQuietly(loop, logger, left, remove()); };
  Task<std::string> making = make();
  std::string id = co_await OnFailure(std::move(making), clean_up);
  co_return id;
}

}  // namespace nodepool::driver::cloud
