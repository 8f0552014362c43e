#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"

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

}  // namespace nodepool::driver::cloud
