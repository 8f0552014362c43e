#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "launcher/launcher.h"
#include "store/records.h"

namespace nodepool::web {

// The entries of a small resource as clients know them. What has changed is found by comparison.
class Published {
 public:
  using Entries = std::map<std::string, std::string>;  // JSON by key
  // `json` is null for an entry that is gone.
  using See = std::function<void(const std::string& key, const std::string* json)>;

  // Shows what differs from the entries before.
  void Replace(Entries entries, const See& see);
  // The same for one entry; without `json` it is gone.
  void Set(const std::string& key, std::optional<std::string> json, const See& see);

 private:
  Entries entries_;
};

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
Published::Entries ComponentEntries(const store::Caches& records);
Published::Entries JobEntries(const store::Caches& records);
Published::Entries RunnerEntries(const launcher::Launcher& launcher);
Published::Entries RunnerJobEntries(const launcher::Launcher& launcher);
// While the records are complete.
Published::Entries ProblemEntries(const launcher::Launcher& launcher);

// When the request was made, by its client's clock or else by ZooKeeper's.
inline WallTime CreationOf(const store::StoredRequest& request) {
  return request.record.created_time.value_or(request.revision.created);
}

}  // namespace nodepool::web
