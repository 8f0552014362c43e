#include "cli/image_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <ostream>

#include "async/cleanup.h"
#include "async/deadline.h"
#include "async/event.h"

namespace nodepool::cli {
namespace {

// How often a growing log is read.
constexpr Duration kLogPause = std::chrono::seconds(1);
// The maximum that is shown at once; of a larger addition only the end is shown.
constexpr std::streamoff kMostLog = 64 * 1024;

// Shows the whole lines that are added to a file.
class LogTail {
 public:
  explicit LogTail(std::string path) : path_(std::move(path)) {}

  bool exists() const { return std::ifstream(path_).good(); }
  void Show(std::ostream& out) {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(0, std::ios::end);
    std::streamoff end = file.tellg();
    if (!file || end <= shown_) return;
    std::streamoff start = std::max(shown_, end - kMostLog);
    std::string text(static_cast<std::size_t>(end - start), 0);
    file.seekg(start);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    std::size_t whole = text.rfind('\n') + 1;
    if (!file || whole == 0) return;
    if (start > shown_)
      out << "[...]\n" << text.substr(text.find('\n') + 1, whole - text.find('\n') - 1);
    else
      out << text.substr(0, whole);
    out.flush();
    shown_ = start + static_cast<std::streamoff>(whole);
  }

 private:
  std::string path_;
  std::streamoff shown_ = 0;
};

class Follower {
 public:
  Follower(Context& context, ImageName image)
      : context_(context), image_(std::move(image)), images_(context.loop, context.store.tree.client()) {}

  Task<> Run(std::function<bool(const store::ImageCache&)> is_done) {
    Subscription watch = images_.OnChange([this](const ImageName& changed) {
      if (changed == image_) changed_.Set();
    });
    auto stop = [this] { return images_.Stop(); };
    co_await WithCleanup(Follow(std::move(is_done)), stop);
  }

 private:
  Task<> Follow(std::function<bool(const store::ImageCache&)> is_done) {
    images_.Start();
    co_await images_.WaitSynced();
    ShowChanges(false);
    while (!images_.synced() || !is_done(images_)) {
      co_await AwaitChange();
      ShowChanges(true);
    }
  }

  Task<> AwaitChange() {
    if (!log_) {
      co_await changed_.Wait();
    } else {
      SteadyTime end = context_.loop.SteadyNow() + kLogPause;
      co_await EndsBy(context_.loop, end, "a change of the image", changed_.Wait());
    }
    changed_.Reset();
  }

  // Prints the changes since the last call; the first call, unless `all`, prints only the build in progress.
  void ShowChanges(bool all) {
    for (const auto& [key, build] : images_.builds()) {
      if (key.image != image_ || !build.record.state) continue;
      auto [known, is_new] = builds_.try_emplace(key, *build.record.state);
      bool is_changed = std::exchange(known->second, *build.record.state) != *build.record.state;
      bool is_begun = is_new && known->second == ImageState::kBuilding;
      if (is_begun) Begin(key, build.record);
      if (all && (is_new || is_changed) && !is_begun) Print(fmt::format("Build {}", key), known->second);
      if (logged_ == key && known->second != ImageState::kBuilding) EndLog();
    }
    for (const auto& [key, upload] : images_.uploads()) {
      if (key.build.image != image_ || !upload.record.state) continue;
      auto [known, is_new] = uploads_.try_emplace(key, *upload.record.state);
      bool is_changed = std::exchange(known->second, *upload.record.state) != *upload.record.state;
      if (all && (is_new || is_changed)) {
        Print(fmt::format("Upload of build {} to {}", key.build, key.provider), known->second);
      }
    }
    if (log_) log_->Show(context_.out);
  }

  void Print(const std::string& what, ImageState state) {
    context_.out << what << ": " << ToString(state);
    if (state == ImageState::kFailed) context_.out << "; the builder tries again";
    context_.out << std::endl;
  }

  void Begin(const store::BuildKey& key, const ImageBuild& record) {
    std::string path = fmt::format("{}/{}", context_.config->common.build_log_dir, key.log_name());
    log_.emplace(path);
    logged_ = key;
    context_.out << fmt::format("Build {}: building", key);
    if (!log_->exists()) {
      log_.reset();
      context_.out << fmt::format(" on {}, log {} there", record.builder.value_or("another host"), path);
    }
    context_.out << std::endl;
  }

  void EndLog() {
    if (log_) log_->Show(context_.out);
    log_.reset();
    logged_.reset();
  }

  Context& context_;
  ImageName image_;
  store::ImageCache images_;
  Event changed_{"a change of the image"};
  std::map<store::BuildKey, ImageState> builds_;
  std::map<store::UploadKey, ImageState> uploads_;
  std::optional<store::BuildKey> logged_;
  std::optional<LogTail> log_;
};

}  // namespace

Task<> FollowImage(Context& context, ImageName image, std::function<bool(const store::ImageCache&)> is_done) {
  Follower follower(context, std::move(image));
  co_await follower.Run(std::move(is_done));
}

}  // namespace nodepool::cli
