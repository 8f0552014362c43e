#pragma once

#include <string_view>

#include "driver/cloud/api/api_error.h"

namespace nodepool::drivers::openstack {

using driver::cloud::api::StatusOf;

// Parses a refusal of any service (driver-openstack.md 6.5, 7.6).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// Whether the cloud's message means that a quota is exhausted (driver-openstack.md 7.6, 7.7).
bool MentionsQuota(std::string_view text);

}  // namespace nodepool::drivers::openstack
