#include "cli/commands/image_build.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <optional>
#include <ostream>
#include <set>

#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "operate/actions.h"

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

namespace {

// Requests to builders about an image (operations.md 5.6, 13.8; D-70). Builders work in the background; with
// `wait` the command ends when they have finished, and shows their progress meanwhile.

// Whether the command goes on; if not, after an error message.
bool IsFine(Context& context, const operate::Done& done) {
  if (!done) context.logger.Error("{}", done.error().why);
  return done.has_value();
}

// The providers with this name, or all if none is given; empty, after an error message, if there are none.
std::vector<ProviderName> ProvidersOf(const Context& context, const std::optional<ProviderName>& wanted,
                                      const ImageName& image) {
  std::vector<ProviderName> providers;
  const auto& configured = context.config->providers;
  if (wanted && !configured.contains(*wanted)) {
    context.logger.Error("{} is not one of the configured providers", *wanted);
    return providers;
  }
  for (const auto& [name, provider] : configured) {
    if ((!wanted || name == *wanted) && operate::IsUploadedTo(*provider, image)) providers.push_back(name);
  }
  if (providers.empty()) {
    context.logger.Error("{} does not list the image {}",
                         wanted ? "Provider " + wanted->value : "No provider", image);
  }
  return providers;
}

bool Boots(const driver::PoolConfig& pool, const ImageName& image) {
  if (pool.max_servers <= 0) return false;  // disabled
  return std::ranges::any_of(pool.labels,
                             [&](const auto& entry) { return entry.second->diskimage == image; });
}

// Whether any node could boot from the image (operations.md 13.8).
bool IsInUse(const Context& context, const ImageName& image) {
  for (const auto& [name, provider] : context.config->providers) {
    for (const auto& [pool_name, pool] : provider->pools) {
      if (Boots(*pool, image)) return true;
    }
  }
  context.logger.Error(
      "No enabled label uses the image {0}; give a label of a pool `diskimage: {0}`, or build the image "
      "alone with image-build {0}",
      image);
  return false;
}

// What the command waits for: a ready upload in each provider that is not of one of these builds and not one
// of these uploads.
struct Awaited {
  ImageName image;
  std::vector<ProviderName> providers;
  std::set<BuildId> old_builds;
  std::set<store::UploadKey> old_uploads;

  bool IsUploaded(const store::ImageCache& images) const {
    return std::ranges::all_of(providers, [&](const ProviderName& provider) {
      return std::ranges::any_of(images.uploads(), [&](const auto& entry) {
        const auto& [key, upload] = entry;
        return key.build.image == image && key.provider == provider &&
               upload.record.state == ImageState::kReady && !old_builds.contains(key.build.build) &&
               !old_uploads.contains(key);
      });
    });
  }
};

Task<> FollowUploads(Context& context, Awaited awaited) {
  auto is_uploaded = [&awaited](const store::ImageCache& images) { return awaited.IsUploaded(images); };
  co_await FollowImage(context, awaited.image, is_uploaded);
}

// Marks the provider's ready uploads of the build, and prints what builders will do.
Task<> ReplaceUploads(Context& context, store::BuildKey build, ProviderName provider, Awaited& awaited) {
  std::vector<store::StoredUpload> uploads = co_await context.store.images.ListUploads(build, provider);
  std::erase_if(uploads, [](const auto& upload) { return upload.record.state != ImageState::kReady; });
  for (const store::StoredUpload& upload : uploads) {
    co_await operate::MarkForDeletion(context.loop, context.store, upload);
    awaited.old_uploads.insert(upload.id);
    context.out << fmt::format("{}: upload {} of build {} is deleted and made again\n", provider,
                               upload.id.upload, build);
  }
  if (uploads.empty())
    context.out << fmt::format("{}: build {} is missing and will be uploaded\n", provider, build);
}

// `nodepool image-build IMAGE`: requests a new build.
Task<int> RequestBuild(Context& context, ImageName image, bool wait) {
  operate::Done asked = co_await operate::RequestBuild(context.store, *context.config, image);
  if (!IsFine(context, asked)) co_return 1;
  if (!wait) co_return 0;
  // A successful build removes the request.
  auto is_built = [image](const store::ImageCache& images) {
    return !images.build_requests().contains(image);
  };
  Task<> follow = FollowImage(context, image, is_built);
  co_await std::move(follow);
  co_return 0;
}

// `nodepool image-upload [PROVIDER] IMAGE`: repeats the upload of the newest ready build to a provider, or to
// all that list the image. An existing upload is marked for deletion, after which a builder makes the next
// one.
Task<int> RequestUpload(Context& context, std::optional<ProviderName> provider, ImageName image, bool wait) {
  Awaited awaited{.image = image,
                  .providers = ProvidersOf(context, provider, image),
                  .old_builds = {},
                  .old_uploads = {}};
  if (awaited.providers.empty()) co_return 1;
  std::optional<store::StoredBuild> newest = co_await operate::NewestReadyBuild(context.store, image);
  if (!newest) {
    context.logger.Error("Image {} has no ready build", image);
    co_return 1;
  }
  std::vector<store::StoredBuild> builds = co_await context.store.images.ListBuilds(image);
  for (const store::StoredBuild& build : builds) {
    if (build.id != newest->id) awaited.old_builds.insert(build.id.build);
  }
  for (const ProviderName& name : awaited.providers) {
    Task<> replace = ReplaceUploads(context, newest->id, name, awaited);
    co_await std::move(replace);
  }
  if (!wait) co_return 0;
  Task<> follow = FollowUploads(context, std::move(awaited));
  co_await std::move(follow);
  co_return 0;
}

// `nodepool image-upload-retry PROVIDER IMAGE`: has a build that is missing in the provider uploaded at once,
// also if builders wait after a failure.
Task<int> RetryUpload(Context& context, ProviderName provider, ImageName image) {
  std::expected<bool, operate::Refusal> asked =
      co_await operate::RetryUpload(context.store, *context.config, image, provider);
  if (!asked) {
    context.logger.Error("{}", asked.error().why);
    co_return 1;
  }
  if (!*asked) context.out << fmt::format("{} has the newest build of {} already\n", provider, image);
  co_return 0;
}

// `nodepool image-update PROVIDER IMAGE`: requests a new build, and its upload to these providers.
Task<int> RequestUpdate(Context& context, std::optional<ProviderName> provider, ImageName image, bool wait) {
  std::string why_not = operate::WhyNotBuilt(*context.config, image);
  if (!why_not.empty()) {
    context.logger.Error("{}", why_not);
    co_return 1;
  }
  Awaited awaited{.image = image,
                  .providers = ProvidersOf(context, provider, image),
                  .old_builds = {},
                  .old_uploads = {}};
  if (awaited.providers.empty() || !IsInUse(context, image)) co_return 1;
  std::vector<store::StoredBuild> builds = co_await context.store.images.ListBuilds(image);
  for (const store::StoredBuild& build : builds) awaited.old_builds.insert(build.id.build);
  co_await context.store.images.RequestBuild(image);
  if (!wait) co_return 0;
  Task<> follow = FollowUploads(context, std::move(awaited));
  co_await std::move(follow);
  co_return 0;
}

constexpr const char* kAllProviders = "all";

std::optional<ProviderName> ProviderOrAll(const std::string& name) {
  return name == kAllProviders ? std::nullopt : std::optional(ProviderName(name));
}

void AddBuild(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string image;
    bool is_waiting = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("image-build", "ask for a build of an image");
  command->add_option("IMAGE", values->image, "name of the image")->required()->type_name("");
  command->add_flag("--wait", values->is_waiting, "wait until it is ready");
  OnCommand(*command, invocation, [values](Context& context) {
    return RequestBuild(context, ImageName(values->image), values->is_waiting);
  });
}

void AddUpload(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::vector<std::string> names;
    bool is_waiting = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("image-upload", "upload the newest build of an image anew");
  command->add_option("IMAGE", values->names, "the provider, or all, which is the default; name of the image")
      ->required()
      ->expected(1, 2)
      ->type_name("[PROVIDER] IMAGE");
  command->add_flag("--wait", values->is_waiting, "wait until it is uploaded");
  OnCommand(*command, invocation, [values](Context& context) {
    std::string provider = values->names.size() == 2 ? values->names.front() : kAllProviders;
    return RequestUpload(context, ProviderOrAll(provider), ImageName(values->names.back()),
                         values->is_waiting);
  });
}

void AddUploadRetry(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string provider;
    std::string image;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand(
      "image-upload-retry", "upload the newest build of an image now, without the pause after a failure");
  command->add_option("PROVIDER", values->provider, "the provider")->required()->type_name("");
  command->add_option("IMAGE", values->image, "name of the image")->required()->type_name("");
  OnCommand(*command, invocation, [values](Context& context) {
    return RetryUpload(context, ProviderName(values->provider), ImageName(values->image));
  });
}

void AddUpdate(CLI::App& app, Invocation& invocation) {
  struct Values {
    std::string provider;
    std::string image;
    bool is_waiting = false;
  };
  auto values = std::make_shared<Values>();
  CLI::App* command = app.add_subcommand("image-update", "ask for a build of an image and its upload");
  command->add_option("PROVIDER", values->provider, "the provider, or all")->required()->type_name("");
  command->add_option("IMAGE", values->image, "name of the image")->required()->type_name("");
  command->add_flag("--wait", values->is_waiting, "wait until it is uploaded");
  OnCommand(*command, invocation, [values](Context& context) {
    return RequestUpdate(context, ProviderOrAll(values->provider), ImageName(values->image),
                         values->is_waiting);
  });
}

}  // namespace

void RegisterImageBuild(CLI::App& app, Invocation& invocation) {
  AddBuild(app, invocation);
  AddUpload(app, invocation);
  AddUploadRetry(app, invocation);
  AddUpdate(app, invocation);
}

}  // namespace nodepool::cli
