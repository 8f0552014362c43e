#include "launcher/stats/stats_metrics.h"

namespace nodepool::launcher::stats {

std::vector<const Metric*> All() {
  return {&kLaunch,
          &kLaunchTime,
          &kProviderLaunch,
          &kProviderLaunchTime,
          &kZoneLaunch,
          &kZoneLaunchTime,
          &kRequestorLaunch,
          &kRequestorLaunchTime,
          &kCandidate,
          &kMachineType,
          &kTaken,
          &kApiCall,
          &kApiCallTime,
          &kApiRate,
          &kNodes,
          &kProviderNodes,
          &kLabelNodes,
          &kHourlyCost,
          &kAddressableRequests,
          &kConfigurationRejected,
          &kLabelShortage,
          &kImageBuildFailed,
          &kImageTooOld,
          &kImageUploadMissing,
          &kMaxServers,
          &kTenantLimit,
          &kProviderUp,
          &kProviderPaused,
          &kProviderStartFailures,
          &kQueueLength,
          &kHostUp,
          &kHostInstances,
          &kHostCores,
          &kHostMemory,
          &kHostCall,
          &kHostCallTime,
          &kLeaked,
          &kLeakedOldSpelling,
          &kCleaned,
          &kMalformed};
}

}  // namespace nodepool::launcher::stats
