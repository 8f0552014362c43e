#pragma once

#include <vector>

#include "launcher/requests/wait_reasons.h"
#include "launcher/status.h"
#include "model/amounts.h"
#include "store/cache/image_cache.h"
#include "store/records.h"
#include "web/api/field_table.h"

namespace nodepool::web {

// The fields of what stands under /api/v1 (docs/reference/api.md is made from them).

const FieldTable<store::StoredNode>& NodeFields();
const FieldTable<launcher::RequestStatus>& RequestFields();
const FieldTable<store::StoredBuild>& BuildFields();
const FieldTable<store::StoredUpload>& UploadFields();
const FieldTable<launcher::ProviderStatus>& ProviderFields();

// An image that stands in ZooKeeper, with all that is known of it.
struct ImageEntry {
  const store::ImageCache& images;
  const ImageName& name;
};
const FieldTable<ImageEntry>& ImageFields();

// Somebody who announces himself: the path, below the directory of components, and the record.
using ComponentEntry = std::map<std::string, Component>::value_type;
const FieldTable<ComponentEntry>& ComponentFields();

}  // namespace nodepool::web
