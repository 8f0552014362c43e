#pragma once

#include "driver/provider_section.h"

namespace nodepool::drivers {

// What drivers declare and read their sections with, for the built-in ones.
using config::Bindings;
using config::Schema;
using config::Section;
using config::Setting;
using config::Words;
using driver::CheckLabelName;
using driver::ConnectionTypeSettings;
using driver::Limit;
using driver::LoginSettings;
using driver::PoolSettings;
using driver::ReadLabel;
using driver::ReadPool;
using driver::ReadProvider;
using driver::Warn;

}  // namespace nodepool::drivers
