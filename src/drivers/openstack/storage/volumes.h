#pragma once

#include <map>
#include <string>
#include <vector>

#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

// A volume as cinder lists it.
struct Volume {
  std::string id;
  std::string status;  // lower case: available, in-use, deleting, error ...
  double gigabytes = 0;
  std::map<std::string, std::string> metadata;
};

// All volumes of the project; none where the cloud has no block storage.
Task<std::vector<Volume>> ListVolumes(Session& session);

// Adds to the volume's metadata.
Task<> MarkVolume(Session& session, std::string id, std::map<std::string, std::string> metadata);

// A missing one is fine; one in use is refused (kInvalid).
Task<> DeleteVolume(Session& session, std::string id);

}  // namespace nodepool::drivers::openstack
