#pragma once

#include "cli/command.h"

namespace nodepool::cli {

struct MigrateOptions {
  bool is_to_ensemble = true;     // else from the ensemble to the embedded server
  bool is_dry_run = false;        // only tell what there is
  bool takes_everything = false;  // also what others keep beside Nodepool's
  bool is_forced = false;         // although somebody is at work on either side
  bool replaces = false;          // delete what the other side has
};

// Copies the records between the embedded server's store and the ensemble, both as the
// configuration has them; then compares both sides. The store is opened in this process;
// when `nodepool standalone` has it, the server there is asked.
//
// Error(kConflict): somebody is at work, or the other side has records; nothing was written.
Task<int> Migrate(Context& context, MigrateOptions options);

}  // namespace nodepool::cli
