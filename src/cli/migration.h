#pragma once

#include "cli/command.h"

namespace nodepool::cli {

enum class MigrateTo {
  kEnsemble,  // from the embedded server
  kEmbedded,  // from the ensemble
  kChroot,    // within the ensemble, from where the Python implementation has the records (D-01)
};

struct MigrateOptions {
  MigrateTo to = MigrateTo::kEnsemble;
  bool is_dry_run = false;        // only print what there is
  bool takes_everything = false;  // also what others keep beside Nodepool's
  bool is_forced = false;         // although a program is at work on either side
  bool replaces = false;          // delete what the other side has
};

// Copies the records between the embedded server's store and the ensemble, both as the
// configuration has them, or within the ensemble; then compares both sides. Only within the ensemble
// the original is deleted then. The store is opened in this process;
// when `nodepool standalone` has it, that is an error, but a dry run, or one that is forced, asks its server.
//
// Error(kConflict): a program is at work, or the other side has records; nothing was written.
Task<int> Migrate(Context& context, MigrateOptions options);

}  // namespace nodepool::cli
