#pragma once

#include <optional>
#include <string>
#include <utility>

#include "driver/cloud/launch/candidates.h"
#include "driver/cloud/quota/account_counters.h"
#include "drivers/gce/api/compute.h"

// What is read of Google and kept, since it changes rarely or never.
namespace nodepool::drivers::gce {

// An image as instances are made from it.
struct ImageSource {
  std::string url;
  std::string architecture;  // "X86_64", "ARM64"; empty: it is not known
};

// The newest image of a family of a project. Error(kInvalid): the project has no image of it.
using Family = std::pair<std::string, std::string>;  // project and family
Task<ImageSource> ReadNewest(Compute& compute, Family family);

// A machine type in a zone (driver-gce.md 15).
using Candidate = driver::cloud::Candidate<std::string>;

// The size of a machine type.
struct TypeSize {
  double cores = 0;               // virtual CPUs
  double ram = 0;                 // MiB
  std::string architecture = "";  // "X86_64", "ARM64"; empty: Google does not say
};

// None: the zone has no such type. Errors: those of Compute::Get.
Task<std::optional<TypeSize>> ReadType(Compute& compute, Candidate candidate);

// What counts under limits beside instances.
inline constexpr const char* kAllCpus = "CPUS_ALL_REGIONS";
inline constexpr const char* kSpotCpus = "PREEMPTIBLE_CPUS";
inline constexpr const char* kAddresses = "IN_USE_ADDRESSES";
inline constexpr const char* kInstances = "INSTANCES";

// Reads the limits of the project in a region, and of the whole project, by Google's names (driver-gce.md
// 11).
Task<> ReadQuotas(Compute& compute, std::string region, driver::cloud::AccountCounters& counters);

}  // namespace nodepool::drivers::gce
