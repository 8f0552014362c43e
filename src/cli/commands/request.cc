#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/wish_arguments.h"
#include "cli/durations.h"
#include "cli/requester.h"

namespace nodepool::cli {
namespace {

struct RequestValues {
  WishArguments wish;
  RequestOptions options;
  std::string hold_for;
  bool is_json = false;
};

RequestOptions RequestOptionsOf(const RequestValues& values) {
  RequestOptions options = values.options;
  if (!values.hold_for.empty()) {
    if (!options.wait) throw CLI::RequiresError("--hold-for", "--wait");
    Expected<Duration> duration = ParseDuration(values.hold_for);
    if (!duration) throw CLI::ValidationError("--hold-for", duration.error().message());
    options.hold_for = *duration;
  }
  options.wish = values.wish.ToWish();
  options.output = values.is_json ? Output::kJson : Output::kTable;
  return options;
}

}  // namespace

void RegisterRequest(CLI::App& app, Invocation& invocation) {
  auto values = std::make_shared<RequestValues>();
  RequestOptions& options = values->options;
  CLI::App* command = app.add_subcommand("request", "ask for nodes, as a CI system does");
  command->add_option("LABEL", values->wish.labels, "label of a node; one for each node")
      ->required()
      ->type_name("");
  command->add_flag("--wait", options.wait, "wait for the nodes and keep them while this command runs");
  command
      ->add_option("--hold-for", values->hold_for,
                   "with --wait: give the nodes back after this time, e.g. 90s or 2h")
      ->type_name("TIME");
  AddWishOptions(*command, values->wish);
  command->add_flag("--json", values->is_json, "print JSON instead of text");
  command->callback([&invocation, values] {
    invocation.command = [options = RequestOptionsOf(*values)](Context& context) {
      return Request(context, options);
    };
  });
}

}  // namespace nodepool::cli
