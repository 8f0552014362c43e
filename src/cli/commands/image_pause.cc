#include "cli/commands/image_pause.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/unknown_names.h"
#include "operate/images.h"

namespace nodepool::cli {
namespace {

void AddPause(CLI::App& app, Invocation& invocation, const char* name, const char* help,
              Task<int> (*change)(Context&, ImageName)) {
  auto image = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("IMAGE", *image, "name of the image")->required()->type_name("");
  OnCommand(*command, invocation,
            [change, image](Context& context) { return change(context, ImageName(*image)); });
}

}  // namespace

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

void RegisterImagePause(CLI::App& app, Invocation& invocation) {
  AddPause(app, invocation, "image-pause", "stop building an image", &PauseImage);
  AddPause(app, invocation, "image-unpause", "build an image again", &UnpauseImage);
}

}  // namespace nodepool::cli
