#include "operate/images.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/unknown_names.h"
#include "store/cache/list_uploads.h"

namespace nodepool::cli {

namespace {

// `nodepool image-pause IMAGE` and `image-unpause IMAGE`: pauses or resumes the builds of the image
// (operations.md 5.6).
Task<int> PauseImage(Context& context, ImageName image) {
  operate::Done paused = co_await operate::PauseImage(context.store, std::move(image));
  if (paused) co_return 0;
  context.logger.Error("{}", paused.error().why);
  co_return 1;
}

Task<int> UnpauseImage(Context& context, ImageName image) {
  std::vector<ImageName> images = co_await context.store.images.List();
  bool has_records = std::ranges::find(images, image) != images.end();
  if (!has_records && !context.config->common.diskimages.contains(image)) {
    context.logger.Error("{}", UnknownImage(*context.config, image));
    co_return 1;
  }
  co_await operate::UnpauseImage(context.store, std::move(image));
  co_return 0;
}

int StatusOf(Context& context, const operate::Done& done) {
  if (!done) context.logger.Error("{}", done.error().why);
  return done ? 0 : 1;
}

std::string_view WithoutZeros(std::string_view number) {
  return number.substr(std::min(number.find_first_not_of('0'), number.size()));
}

bool IsMeant(const store::StoredUpload& upload, const std::string& id) {
  return WithoutZeros(upload.id.upload.value) == WithoutZeros(id) || upload.record.external_id == id;
}

// Which upload image-delete selects, in one of two forms.
struct DeleteValues {
  std::string id;
  std::string provider, image, build, upload;
  bool is_forced = false;

  store::UploadKey key() const {
    return {{ImageName(image), BuildId(build)}, ProviderName(provider), UploadId(upload)};
  }
};

// Marks builds and uploads for deletion; a builder deletes them (operations.md 5.6). `name` is <image>-<build
// id>.
Task<int> DibImageDelete(Context& context, std::string name) {
  std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) {
    context.logger.Error("\"{}\" is no build; expected IMAGE-BUILD, as dib-image-list shows it", name);
    co_return 1;
  }
  store::BuildKey key{ImageName(name.substr(0, dash)), BuildId(name.substr(dash + 1))};
  operate::Done done = co_await operate::DeleteBuild(context.loop, context.store, std::move(key));
  co_return StatusOf(context, done);
}

Task<int> ImageDelete(Context& context, store::UploadKey key, bool is_forced) {
  operate::Done done = co_await operate::DeleteUpload(context.loop, context.store, std::move(key), is_forced);
  co_return StatusOf(context, done);
}

// The same for an upload that is given by its number, with or without leading zeros, or by the image's id in
// the cloud (operations.md 13.8). If several match, none is deleted. If forced, the record is removed at
// once; the image in the cloud is then deleted as a leak.
Task<int> ImageDeleteById(Context& context, std::string id, bool is_forced) {
  std::vector<store::StoredUpload> uploads = co_await store::ListUploads(context.store);
  std::erase_if(uploads, [&](const store::StoredUpload& upload) { return !IsMeant(upload, id); });
  if (uploads.size() > 1) {
    context.logger.Error("\"{}\" may mean each of these:", id);
    for (const store::StoredUpload& upload : uploads) {
      const auto& [build, provider, number] = upload.id;
      context.logger.Error("image-delete --provider {} --image {} --build-id {} --upload-id {}", provider,
                           build.image, build.build, number);
    }
    co_return 1;
  }
  if (!uploads.empty()) co_return co_await ImageDelete(context, uploads.front().id, is_forced);
  context.logger.Error("Image upload not found");
  co_return 1;
}

void AddPause(CLI::App& app, Invocation& invocation, const char* name, const char* help,
              Task<int> (*change)(Context&, ImageName)) {
  auto image = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("IMAGE", *image, "name of the image")->required()->type_name("");
  OnCommand(*command, invocation,
            [change, image](Context& context) { return change(context, ImageName(*image)); });
}

void AddBuildDelete(CLI::App& app, Invocation& invocation) {
  auto id = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("dib-image-delete", "delete a build of an image, with its uploads");
  command->add_option("BUILD", *id, "IMAGE-BUILD, as dib-image-list shows it")->required()->type_name("");
  OnCommand(*command, invocation, [id](Context& context) { return DibImageDelete(context, *id); });
}

void AddUploadDelete(CLI::App& app, Invocation& invocation) {
  auto values = std::make_shared<DeleteValues>();
  CLI::App* command = app.add_subcommand(
      "image-delete",
      "delete an upload of an image; that of the newest build is made again, so to go back to the image "
      "before use dib-image-delete");
  auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    return command->add_option(name, value, help)->type_name(type);
  };
  CLI::Option* provider = add("--provider", values->provider, "the provider", "PROVIDER");
  CLI::Option* image = add("--image", values->image, "the image", "IMAGE");
  CLI::Option* build = add("--build-id", values->build, "the build", "ID");
  CLI::Option* upload = add("--upload-id", values->upload, "the upload", "ID");
  provider->needs(image)->needs(build)->needs(upload);
  for (CLI::Option* option : {image, build, upload}) option->needs(provider);
  add("ID", values->id, "in place of these: number of the upload, or id of the image in the cloud", "")
      ->excludes(provider);
  command->add_flag("--force", values->is_forced,
                    "remove its record at once; what the cloud has is deleted by a launcher, as a leak");
  command->callback([&invocation, values, provider] {
    if (values->id.empty() && provider->count() == 0) {
      throw CLI::RequiredError("ID, or --provider, --image, --build-id and --upload-id");
    }
    invocation.command = [values](Context& context) {
      return values->id.empty() ? ImageDelete(context, values->key(), values->is_forced)
                                : ImageDeleteById(context, values->id, values->is_forced);
    };
  });
}

}  // namespace

void RegisterImagePause(CLI::App& app, Invocation& invocation) {
  AddPause(app, invocation, "image-pause", "stop building an image", &PauseImage);
  AddPause(app, invocation, "image-unpause", "build an image again", &UnpauseImage);
}

void RegisterImageDelete(CLI::App& app, Invocation& invocation) {
  AddBuildDelete(app, invocation);
  AddUploadDelete(app, invocation);
}

}  // namespace nodepool::cli
