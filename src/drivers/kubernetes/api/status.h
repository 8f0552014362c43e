#pragma once

#include <set>
#include <string>
#include <string_view>

#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::kubernetes {

// Reads a refusal, a Status object or plain text (driver-kubernetes.md 4.2); the code is the Status' reason,
// or the reason of its first cause where that says more: "NamespaceTerminating".
driver::cloud::api::Fault ReadStatus(int status, std::string_view body);

// Whether an error's text is the cluster's way to say that a quota is used up (driver-kubernetes.md 10).
bool MentionsQuota(std::string_view text);

// The resources, by their names in records, that such a text says are used up; empty: it names none.
std::set<std::string> ExceededResources(std::string_view text);

// The reason in a Failure that an API server caused; empty: another failure, or one without a reason.
std::string ReasonOf(const Failure& failure);

}  // namespace nodepool::drivers::kubernetes
