#include "builder/upload_progress.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "base/text.h"

namespace nodepool::builder {

namespace {

constexpr Duration kPause = std::chrono::seconds(10);
constexpr std::size_t kMaxStep = 100;

}  // namespace

std::string ToText(const driver::UploadProgress& progress) {
  return fmt::format("{}, {} %", Excerpt(progress.step, kMaxStep), progress.percent);
}

void UploadProgressNotes::Report(const driver::UploadProgress& progress) {
  std::string text = ToText(progress);
  if (text == text_) return;
  text_ = std::move(text);
  has_changed_.Set();
}

Task<> UploadProgressNotes::Run() {
  while (true) {
    co_await has_changed_.Wait();
    has_changed_.Reset();
    Outcome<> written = co_await Attempt(write_(text_));
    if (!written) logger_.Debug("The progress could not be written: {}", written.error().message());
    co_await loop_.SleepFor(kPause);
  }
}

}  // namespace nodepool::builder
