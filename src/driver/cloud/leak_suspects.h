#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "driver/cloud/adapter.h"
#include "driver/cloud/metadata.h"
#include "store/cache/image_cache.h"
#include "store/cache/node_cache.h"

namespace nodepool::driver::cloud {

// Something with our name on it that no record knows.
struct Suspect {
  Resource resource;
  Owner owner;
  std::string missing;  // the record, in words: "node 0000000007"

  // What makes it the same at the next look.
  auto key() const { return std::tuple(resource.type, resource.id, missing); }
};

// Suspect is what belongs to a node without a record; a machine of a living node whose record
// names another machine (D-92); what was uploaded and has no record of the upload.
std::vector<Suspect> FindSuspects(const std::vector<Resource>& resources, const ProviderName& provider,
                                  const store::NodeCache& nodes, const store::ImageCache& images);

// Whether the resource was uploaded by this provider's builders: an image, its snapshot.
bool IsUploaded(const Owner& owner);

}  // namespace nodepool::driver::cloud
