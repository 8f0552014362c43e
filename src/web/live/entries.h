#pragma once

#include <optional>
#include <string>

#include "launcher/launcher.h"
#include "web/live/published.h"

namespace nodepool::web {

// Entries as /api/v1 shows them, with times in place of ages, so that they need not be sent again each
// second. nullopt: there is no such record. Keys of lists: parts of the name, joined with slashes (http.md
// PAGE-3).

std::optional<std::string> NodeEntry(const launcher::Launcher& launcher, const NodeId& id);
std::optional<std::string> RequestEntry(const launcher::Launcher& launcher, const RequestId& id);
std::optional<std::string> EntryOfImage(const launcher::Launcher& launcher, const ImageName& name);
// As the lease's client sees it, or as others do.
std::string LeaseEntryFor(const launcher::Launcher& launcher, const store::StoredLease& lease,
                          bool is_client);
std::optional<std::string> BuildEntry(const launcher::Launcher& launcher, const store::BuildKey& key);
std::optional<std::string> UploadEntry(const launcher::Launcher& launcher, const store::UploadKey& key);
// What names a build or upload that is gone.
std::string PathOf(const store::BuildKey& key);
std::string PathOf(const store::UploadKey& key);
// Without `next_start`, which changes all the time.
Published::Entries ProviderEntries(const launcher::Launcher& launcher);
Published::Entries ComponentEntries(const launcher::Records& records);
Published::Entries JobEntries(const launcher::Records& records);
// While the records are complete.
Published::Entries ProblemEntries(const launcher::Launcher& launcher);

}  // namespace nodepool::web
