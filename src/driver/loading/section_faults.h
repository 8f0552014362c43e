#pragma once

#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "driver/driver.h"

namespace nodepool::driver {

// Everything that `driver` refuses in a provider's section, of which it has named `first`: it is
// asked again about the section without its pools, about each pool without its entries, and about
// each entry alone. Pools and their entries are labels, hosts and the like, which nothing else in
// the section refers to; of what stands outside of the pools, only the first fault is found.
std::vector<Error> SectionFaults(Driver& driver, const config::ProviderSection& section,
                                 const config::Config& config, const Error& first);

}  // namespace nodepool::driver
