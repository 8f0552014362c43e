#pragma once

#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/libvirt/host/site.h"

namespace nodepool::drivers::libvirt {

// Active domains of all hosts, also foreign ones. Of a host that cannot be used now those of its last list.
Task<std::vector<driver::cloud::Instance>> ListMachines(Site& site);

// Everything on the usable hosts that has our marks: domains; volumes of machines without a domain; uploaded
// images.
Task<std::vector<driver::cloud::Resource>> ListMarked(Site& site);

// Deletes what ListMarked listed. If it is gone already, that is success.
Task<> DeleteMarked(Site& site, driver::cloud::Resource resource);

// Which of these external ids name machines that no longer run. A host that cannot be used now has lost none.
Task<std::vector<boost::json::value>> MissingMachines(Site& site, std::vector<boost::json::value> ids);

}  // namespace nodepool::drivers::libvirt
