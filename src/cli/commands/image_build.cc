#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/image_requests.h"

namespace nodepool::cli {
namespace {

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
