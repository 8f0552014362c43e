#pragma once

#include <functional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "base/log/logging.h"
#include "driver/image_store.h"

namespace nodepool::builder {

// "sending the file, 40 %"
std::string ToText(const driver::UploadProgress& progress);

// Writes how far an upload has come where operators see it: when it has changed by a percent or is at another
// step, and at most every ten seconds.
class UploadProgressNotes {
 public:
  using Write = std::function<Task<>(std::string text)>;

  // The loop outlives it.
  UploadProgressNotes(Loop& loop, log::Logger logger, Write write)
      : loop_(loop), logger_(std::move(logger)), write_(std::move(write)) {}

  // May be called as often as there is news.
  void Report(const driver::UploadProgress& progress);

  // Writes until it is cancelled. A write that fails is repeated with the next news only.
  Task<> Run();

 private:
  Loop& loop_;
  log::Logger logger_;
  Write write_;
  std::string text_;
  Event has_changed_{"progress of an upload"};
};

}  // namespace nodepool::builder
