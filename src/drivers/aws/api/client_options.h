#pragma once

#include "driver/cloud/api/api_client.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

// How often a call that carries data is repeated at least after a passing fault: with the pauses of the
// client this is about five minutes, which is little beside the hours of an upload.
inline constexpr int kDataRepeats = 12;

// What the clients of AWS's services have in common. `least_repeats`: after passing faults, in place of what
// the account says if that is less.
driver::cloud::api::ApiClient::Options ClientOptions(const Account& account,
                                                     driver::cloud::api::FaultReader read_fault,
                                                     driver::cloud::api::CallMetrics metrics,
                                                     int least_repeats = 0);

// AWS's id of the call, in a header of every answer; empty: another server answered.
std::string RequestIdOf(const net::HttpReply& answer);

// What an operator does about calls without a usable answer.
driver::cloud::api::Remedies RemediesOf(const Account& account);

}  // namespace nodepool::drivers::aws
