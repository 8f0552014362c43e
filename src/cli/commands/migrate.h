#pragma once

#include "cli/command.h"

namespace nodepool::cli {

enum class MigrateTo {
  kEnsemble,  // from the embedded server
  kEmbedded,  // from the ensemble
  kChroot,    // within the ensemble, from where the Python implementation stores the records (D-01)
};

struct MigrateOptions {
  MigrateTo to = MigrateTo::kEnsemble;
  bool is_dry_run = false;        // only print what exists
  bool takes_everything = false;  // also the records of other programs
  bool is_forced = false;         // even if a program is connected to either side
  bool replaces = false;          // delete the records of the target first
};

// Copies the records between the embedded server's store and the ensemble, both as configured, or within the
// ensemble; then compares both sides. Only a migration within the ensemble then deletes the original. The
// store is opened in this process; if `nodepool standalone` has it open, that is an error, but a dry run or a
// forced migration uses its server.
//
// Error(kConflict): a program is connected, or the target has records; nothing was written.
Task<int> Migrate(Context& context, MigrateOptions options);

}  // namespace nodepool::cli
