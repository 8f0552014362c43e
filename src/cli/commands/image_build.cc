#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <ostream>
#include <set>

#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/image_progress.h"
#include "operate/images.h"

namespace nodepool::cli {

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
