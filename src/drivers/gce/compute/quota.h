#pragma once

#include <string>

#include "drivers/gce/gce_driver.h"

namespace nodepool::drivers::gce {

// Reads the limits of the project in a region, and of the whole project, as counters of the resources that
// count under them (driver-gce.md 11).
Task<> ReadQuotas(Compute& compute, std::string region, driver::cloud::AccountCounters& counters);

// What one node of the label uses at least, under the names of Google's metrics beside `instances`, `cores`
// and `ram` (driver-gce.md 11). Of several candidates a resource counts if all use it, as much as the
// smallest does. Error(kInvalid): no zone has such a type; Error(kRetry): the sizes are not known yet.
driver::QuotaInformation NeedOf(const GceCloud& cloud, const GceLabel& label);

// What an instance uses, as far as its type is known.
Resources UseOf(const GceCloud& cloud, const GceInstance& instance);

// The resource of a node's need that counts under one of Google's metrics.
std::string ResourceOf(const std::string& metric);

// The metric under which the type's virtual CPUs count: "CPUS" of older families, "N2_CPUS".
std::string CpuMetric(const std::string& type, bool is_spot, bool has_spot_limit);

}  // namespace nodepool::drivers::gce
