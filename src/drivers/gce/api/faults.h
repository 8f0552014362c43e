#pragma once

#include <string>
#include <string_view>

#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::gce {

using driver::cloud::api::CodeOf;

// Reads a refusal of Compute Engine or Cloud Storage: {"error": {"code", "message", "errors": [{"reason"}]}}.
// The fault's code is the reason, which decides its verdict (driver-gce.md 17).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// What codes of failed operations and reasons of refusals mean; of several errors the last of these counts.
enum class Meaning {
  kOther,
  kNotReady,     // another change of the resource is in progress
  kBadSettings,  // refused again: it names something that does not exist, or is not well formed
  kQuota,        // a limit of the project has been reached
  kNoCapacity,   // there is no machine or no address of that kind in the zone now
};
// `text`: of the same error.
Meaning MeaningOf(std::string_view code, std::string_view text = "");

// The metric in "Quota 'CPUS' exceeded. Limit: 8.0 in region us-central1."; empty: none.
std::string MetricIn(std::string_view text);

}  // namespace nodepool::drivers::gce
