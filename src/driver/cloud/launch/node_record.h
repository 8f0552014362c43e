#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "async/task.h"
#include "driver/cloud/adapter.h"
#include "driver/cloud/provider_parts.h"
#include "driver/provider_config.h"
#include "model/breaker.h"
#include "model/node.h"

namespace nodepool::driver::cloud {

// What a node's comment says of its launch: which kind of machine it is, where, why, and what it costs per
// hour; empty if there was no choice and the price is not known. `choice`: the candidate and why it was
// chosen; empty: there were none.
//
//   Launched as m5.large in b; no capacity for m6i.large in b until 12:03 UTC; 0.096 per hour
std::string LaunchComment(const Instance& instance, const std::string& choice);

// Whether a comment is of this kind, so that the launcher may replace it; another one is its author's.
bool IsLaunchComment(std::string_view comment);

// Why a creation failed, by the adapter's error, the verdict and, for refused credentials and missing images,
// by the answer of the cloud (breaker.md 1). Not for key scans, whose errors are no answers of the cloud.
FailureKind KindOf(const Failure& failure);

// Where each field of a node's record comes from (launcher.md 17).

// Fills in what is known before the machine is created: image, connection, resources. Returns the image's id
// in the cloud; none for a cloud image. Throws Error(kInvalid) when the label has no image that could be
// booted, or can never work.
std::optional<std::string> FillBeforeLaunch(ProviderParts& context, const LabelConfig& label,
                                            const NodeRequest& request, Node& record);

// Fills in what the cloud reported about the machine.
void FillFromInstance(const Instance& instance, const PoolConfig& pool, Node& record);

}  // namespace nodepool::driver::cloud
