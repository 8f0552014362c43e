#pragma once

#include "drivers/kubernetes/kubeconfig/files.h"
#include "drivers/kubernetes/kubeconfig/kubeconfig.h"

namespace nodepool::drivers::kubernetes {

// The user of a kubeconfig; of several kinds of credentials the first of driver-kubernetes.md 3.2. Adds what
// it reads to `files`. Error(kInvalid) names the file.
User ReadUser(const ConfigEntry& entry, std::vector<std::string>& files);

}  // namespace nodepool::drivers::kubernetes
