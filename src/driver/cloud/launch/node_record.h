#pragma once

#include <optional>
#include <string>

#include "driver/cloud/adapter.h"
#include "driver/cloud/provider_parts.h"
#include "driver/provider_config.h"
#include "model/node.h"

namespace nodepool::driver::cloud {

// Where each field of a node's record comes from (launcher.md 17).

// Fills in what is known before the machine is created: image, connection, resources. Returns the image's id
// in the cloud; none for a cloud image. Throws Error(kInvalid) when the label has no image that could be
// booted, or can never work.
std::optional<std::string> FillBeforeLaunch(ProviderParts& context, const LabelConfig& label,
                                            const NodeRequest& request, Node& record);

// Fills in what the cloud reported about the machine.
void FillFromInstance(const Instance& instance, const PoolConfig& pool, Node& record);

}  // namespace nodepool::driver::cloud
