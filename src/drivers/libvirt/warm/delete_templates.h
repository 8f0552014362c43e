#pragma once

#include <string>
#include <vector>

#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Deletes the templates on the image with this path from which no machine runs.
Task<> DeleteTemplatesOn(Host& host, std::string image_path);

// Deletes the provider's templates that were used last a day ago or before, and what an interrupted making
// has left. One that machines run from stays.
Task<> DeleteUnusedTemplates(Site& site, Host& host);

}  // namespace nodepool::drivers::libvirt
