#pragma once

#include <string>
#include <string_view>

#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::aws {

using driver::cloud::api::CodeOf;

// Reads a refusal of a service with the query protocol: EC2's
// <Response><Errors><Error><Code/><Message/></Error></Errors><RequestID/></Response> and STS's
// <ErrorResponse><Error><Code/>..., and S3's <Error><Code/>... (driver-aws.md 5.1, 5.4). Its verdict comes
// from the code (driver-aws.md 18).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// The same of a refusal whose parts were read already.
driver::cloud::api::Fault FaultOf(int status, std::string code, std::string message);

// --- What codes mean, wherever they appear: in refusals, and as the reason why an instance ended
// ------------- There is no machine of that kind at the moment.
bool MeansNoCapacity(std::string_view code);
// A candidate cannot be made that others of the label may replace: its zone has no such type, its subnet no
// address, or the account's rules forbid it.
bool ConcernsOneCandidate(std::string_view code);
// There were too many calls.
bool MeansThrottled(std::string_view code);
// A limit of the account or of a subnet has been reached.
bool MeansQuota(std::string_view code);
// The same launch would be refused again: its settings name something that does not exist, or do not go
// together.
bool MeansBadSettings(std::string_view code);

}  // namespace nodepool::drivers::aws
