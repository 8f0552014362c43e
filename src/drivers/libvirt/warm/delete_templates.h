#pragma once

#include <string>
#include <vector>

#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Deletes the templates on the image in this volume from which no machine runs.
Task<> DeleteTemplatesOn(Host& host, std::string image);

// Deletes the provider's templates that were used last a day ago or before, and what an interrupted making
// has left. One that machines run from stays. `volumes` and `domains` are all that the host has.
Task<> DeleteUnusedTemplates(Site& site, Host& host, const std::vector<VolumeInfo>& volumes,
                             const std::vector<DomainInfo>& domains);

}  // namespace nodepool::drivers::libvirt
