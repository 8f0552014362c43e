#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "driver/cloud/api/kept_answers.h"
#include "driver/cloud/quota/machine_sizes.h"
#include "drivers/gce/api/compute.h"
#include "drivers/gce/config/gce_config.h"

// What is read of Google and kept, since it changes rarely or never.
namespace nodepool::drivers::gce {

// An image as instances are made from it.
struct ImageSource {
  std::string url;
  std::string architecture;  // "X86_64", "ARM64"; empty: it is not known
};

// The newest images of families, each read at most every five minutes. While Google does not answer, the last
// good one is used for an hour (driver-gce.md 12).
class Families {
 public:
  // Everything outlives it.
  Families(Loop& loop, Compute& compute, log::Logger logger);

  // Error(kInvalid): the entry names no family, or the project has no image of it.
  Task<ImageSource> Find(GceCloudImage image);
  // Something was refused; the next one is read anew.
  void Doubt() { newest_.Doubt(); }

 private:
  using Key = std::pair<std::string, std::string>;  // project and family
  Task<ImageSource> ReadNewest(Key key);

  Compute& compute_;
  driver::cloud::api::KeptAnswers<Key, ImageSource> newest_;
};

// A machine type in a zone.
struct Candidate {
  std::string type;
  std::string zone;
  auto operator<=>(const Candidate&) const = default;
};

// The size of a machine type.
struct TypeSize {
  double cores = 0;               // virtual CPUs
  double ram = 0;                 // MiB
  std::string architecture = "";  // "X86_64", "ARM64"; empty: Google does not say
};

// What is known of machine types by zone.
class MachineTypes : public driver::cloud::MachineSizes<Candidate, TypeSize> {
 public:
  // `compute` outlives it.
  explicit MachineTypes(Compute& compute) : compute_(compute) {}

  // Asks for it unless its size is known; a zone may get a type that it lacked. Errors: those of
  // Compute::Get, except for a type that the zone does not have.
  Task<> Learn(Candidate candidate);

 private:
  Compute& compute_;
};

// A limit of the project and how much all who share the project use of it.
struct Metric {
  double limit = 0;
  double usage = 0;
  bool operator==(const Metric&) const = default;
};

// What counts under limits beside instances.
inline constexpr const char* kAllCpus = "CPUS_ALL_REGIONS";
inline constexpr const char* kSpotCpus = "PREEMPTIBLE_CPUS";
inline constexpr const char* kAddresses = "IN_USE_ADDRESSES";
inline constexpr const char* kInstances = "INSTANCES";

// The limits of a project in a region, and of the whole project, by Google's names (driver-gce.md 11).
class RegionQuota {
 public:
  // `compute` outlives it.
  RegionQuota(Compute& compute, std::string region, log::Logger logger)
      : compute_(compute), region_(std::move(region)), logger_(std::move(logger)) {}

  // Reads both. What cannot be read keeps its last values, or is unlimited; each cause is logged once.
  Task<> Read();
  // Why the last reading failed; empty: it succeeded.
  const std::string& fault() const { return fault_; }
  // Null: Google reports no such limit, or it is not known yet.
  const Metric* Find(const std::string& metric) const;
  // Spot instances count under a limit of their own.
  bool has_spot_limit() const;

 private:
  Task<> ReadBoth();
  Task<> ReadInto(ComputeCall call, std::set<std::string> wanted);

  Compute& compute_;
  std::string region_;
  log::Logger logger_;
  std::map<std::string, Metric> metrics_;
  std::string fault_;
};

}  // namespace nodepool::drivers::gce
