#pragma once

#include "driver/provider_section.h"

namespace nodepool::drivers {

// The functions with which drivers read their sections, for the built-in ones.
using driver::CheckLabelName;
using driver::ConnectionTypeSettings;
using driver::OpenProvider;
using driver::PoolSettings;
using driver::ReadConnectionType;
using driver::ReadCount;
using driver::ReadLabelName;
using driver::ReadObject;
using driver::ReadPool;
using driver::ReadProvider;

}  // namespace nodepool::drivers
