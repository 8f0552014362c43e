#pragma once

#include <string>
#include <string_view>

#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::gce {

using driver::cloud::api::CodeOf;

// Reads a refusal of Compute Engine or Cloud Storage: {"error": {"code", "message", "errors": [{"reason"}]}}.
// The fault's code is the reason, which decides its verdict (driver-gce.md 17).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// --- What codes of failed operations and reasons of refusals mean ---------------------------------
// There is no machine or no address of that kind in the zone now; `text`: of the same error.
bool MeansNoCapacity(std::string_view code, std::string_view text);
// A limit of the project has been reached.
bool MeansQuota(std::string_view code);
// The same insert would be refused again: it names something that does not exist, or is not well formed.
bool MeansBadSettings(std::string_view code);
// Another change of the resource is in progress.
bool MeansNotReady(std::string_view code);

// The metric in "Quota 'CPUS' exceeded. Limit: 8.0 in region us-central1."; empty: none.
std::string MetricIn(std::string_view text);

}  // namespace nodepool::drivers::gce
