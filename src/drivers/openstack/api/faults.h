#pragma once

#include <string_view>

#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::openstack {

using driver::cloud::api::StatusOf;

// What a refusal of any service says (driver-openstack.md 6.5, 7.6).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// Whether the cloud's words mean that a quota is used up (driver-openstack.md 7.6, 7.7).
bool SpeaksOfQuota(std::string_view text);

}  // namespace nodepool::drivers::openstack
