#include <CLI/CLI.hpp>

#include "cli/commands/commands.h"
#include "cli/migration.h"

namespace nodepool::cli {

void RegisterMigrate(CLI::App& app, Invocation& invocation) {
  static const std::map<std::string, MigrateTo> directions = {{"to-ensemble", MigrateTo::kEnsemble},
                                                              {"to-embedded", MigrateTo::kEmbedded},
                                                              {"to-chroot", MigrateTo::kChroot}};
  struct Values {
    std::string direction;
    MigrateOptions options;
  };
  auto values = std::make_shared<Values>();
  MigrateOptions& options = values->options;
  CLI::App* command = app.add_subcommand("migrate",
                                         "copy the records between the embedded server and "
                                         "zookeeper-servers, or move them to the chroot");
  command
      ->add_option("DIRECTION", values->direction,
                   "to-ensemble, to-embedded, or to-chroot: from where the Python implementation has them")
      ->required()
      ->check(CLI::IsMember({"to-ensemble", "to-embedded", "to-chroot"}))
      ->type_name("");
  command->add_flag("--dry-run", options.is_dry_run, "only list what there is to copy");
  command->add_flag("--all", options.takes_everything,
                    "also what other programs keep beside Nodepool's records");
  command->add_flag("--force", options.is_forced,
                    "proceed even if launchers, builders or clients are connected");
  command->add_flag("--replace", options.replaces, "delete what the other side has, first");
  command->callback([&invocation, values] {
    values->options.to = directions.at(values->direction);
    invocation.needs_ensemble = true;
    invocation.command = [values](Context& context) { return Migrate(context, values->options); };
  });
}

}  // namespace nodepool::cli
