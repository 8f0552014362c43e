#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/log/logging.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "driver/provider_environment.h"
#include "store/cache/cached_records.h"

namespace nodepool::driver::cloud {

// A resource with our metadata and without a record.
struct Suspect {
  Resource resource;
  Owner owner;
  std::string missing;  // the record, in words: "node 0000000007"
  // The upload that made it has a record, which names another image of the same attempt: a call was carried
  // out twice.
  bool is_twin = false;

  // Identifies the suspect in the next sweep.
  auto key() const { return std::tuple(resource.type, resource.id, missing); }
};

// Suspects are resources of a node without a record; machines of a living node whose record names another
// machine (D-92); uploaded resources without a record of the upload; images of a ready upload whose record
// names another image of the same attempt.
std::vector<Suspect> FindSuspects(const std::vector<Resource>& resources, const ProviderName& provider,
                                  const store::NodeCache& nodes, const store::ImageCache& images);

// Whether the resource was uploaded by this provider's builders: an image or its snapshot.
bool IsUploaded(const Owner& owner);

// Finds resources with our metadata and without a record, and deletes what two consecutive sweeps find
// (drivers.md 5.11).
//
// The ZooKeeper tree may have been lost with all records. Resources of nodes are deleted all the same:
// without a record they are unusable. Uploads, and resources that outlive a machine, are deleted only if this
// tree once had the missing record, and in one sweep no more uploads than ProviderConfig::max_leaked_share
// (D-99). What is not deleted is logged once, until it changes.
class LeakCleanup {
 public:
  LeakCleanup(const ProviderEnvironment& environment, Adapter& adapter, const ProviderConfig& config)
      : environment_(environment), adapter_(adapter), config_(config) {}

  // One sweep. Returns whether something that was to be deleted is gone. A resource that cannot be deleted is
  // logged and tried again in the next sweep; a list that cannot be read is an error.
  Task<bool> Run();

 private:
  bool AreRecordsKnown() const;
  // Those of `suspects` that were suspects in the last sweep.
  std::vector<Suspect> SeenAgain(std::vector<Suspect> suspects);
  Task<std::vector<Suspect>> OnceKnown(std::vector<Suspect> leaked);
  Task<bool> WasKnown(const Suspect& suspect);
  std::vector<Suspect> WithinShare(std::vector<Suspect> leaked, const std::vector<Resource>& resources);
  Task<bool> Delete(Suspect suspect, LeakTally& tally);
  void SayOnce(std::string& said, std::string text);

  const ProviderEnvironment& environment_;
  Adapter& adapter_;
  const ProviderConfig& config_;
  log::Logger logger_{"nodepool.StateMachineProvider." + config_.name.value};
  std::set<std::tuple<std::string, std::string, std::string>> suspects_;  // keys of the last sweep
  std::string said_of_unknown_, said_of_share_;
};

// The max. number of `all` that one sweep deletes, for a share in percent: at least one, unless the share is
// 0.
std::size_t MaxLeaked(std::size_t all, int share);

}  // namespace nodepool::driver::cloud
