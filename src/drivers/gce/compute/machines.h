#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <string>
#include <vector>

#include "driver/cloud/adapter.h"
#include "drivers/gce/gce_cloud.h"

// The machines of a provider: what GceAdapter is asked about them.
namespace nodepool::drivers::gce {

// Makes an instance and waits until it runs and has its addresses (driver-gce.md 7). Its name is stored
// before it is made, with the launch's mark until the insert has been accepted.
Task<driver::cloud::Instance> CreateMachine(GceCloud& cloud, driver::cloud::MachineReport& machine,
                                            driver::cloud::CreateParameters parameters);

// Deletes the instance, if it is the one that the id means, and waits until it is gone (driver-gce.md 10).
// One of the same name that is somebody else's is left alone.
Task<> DeleteMachine(GceCloud& cloud, driver::cloud::MachineReport& machine, MachineId id);

// Deletes a leaked instance if it still has these marks; does not wait for its end.
Task<> DeleteLeaked(GceCloud& cloud, MachineId id, const std::map<std::string, std::string>& marks);

// All instances in the provider's zones; for the quota. Zones that cannot be listed are left out, unless it
// is all of them.
Task<std::vector<driver::cloud::Instance>> ListMachines(GceCloud& cloud);

// Instances in whatever state, images and objects with this provider's marks (driver-gce.md 16).
Task<std::vector<driver::cloud::Resource>> ListMarked(GceCloud& cloud);
Task<> DeleteMarked(GceCloud& cloud, driver::cloud::Resource resource);

// Those of `ids` whose instances are not listed. Of a zone that cannot be listed none is missing.
Task<std::vector<boost::json::value>> MissingInstances(GceCloud& cloud, std::vector<boost::json::value> ids);

// Those of `ids` whose instances are listed as stopped, or that Google has taken away (driver-gce.md 14).
Task<std::vector<driver::cloud::AnnouncedEnd>> EndingInstances(GceCloud& cloud,
                                                               std::vector<boost::json::value> ids);

}  // namespace nodepool::drivers::gce
