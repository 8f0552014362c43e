#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "config/schema/section.h"
#include "model/node.h"

namespace nodepool::driver {

// The limit of what has none.
inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Amounts or limits of resources (drivers.md 2.1). `cores`, `instances` and `ram`
// (MiB) are always present; others only if given. Arithmetic treats an absent
// resource as `absent`: 0 for amounts, kUnlimited for limits.
class QuotaInformation {
 public:
  // All zero.
  QuotaInformation();
  // An amount used or needed; absent resources count as 0.
  static QuotaInformation Amount(Resources resources);
  // A limit; absent resources are unlimited.
  static QuotaInformation Limit(Resources resources);
  // The need of a machine of unknown size: one instance.
  static QuotaInformation OneInstance();

  void Add(const QuotaInformation& other);
  void Subtract(const QuotaInformation& other);
  // No resource below zero. Infinity minus infinity counts as fitting.
  bool NonNegative() const;

  const Resources& resources() const { return resources_; }
  double Get(const std::string& resource) const;

 private:
  QuotaInformation(Resources resources, double absent);

  Resources resources_;
  double absent_ = 0;
};

// How to log in to machines made from an image; copied to the node.
struct ConnectionSettings {
  std::optional<std::string> username;
  std::optional<std::string> python_path = "auto";
  std::optional<std::string> shell_type;
  std::string connection_type = "ssh";
  int connection_port = 22;
};

// Whether a request for a label would succeed, given free resources.
enum class Readiness {
  kReady,
  kNotReady,  // requests are declined
  kUnknown,   // requests wait until the provider says that something may have changed
};

// What identifies a label of a provider, also when its configuration is read again.
struct LabelKey {
  PoolName pool;
  LabelName label;
  auto operator<=>(const LabelKey&) const = default;
};

// What a pool offers under a label. Drivers derive their own with their options.
struct LabelConfig {
  LabelName name;
  PoolName pool;  // that offers it; set by PoolConfig::Offer
  // Exactly one for drivers that boot images; neither for those that do not.
  std::optional<ImageName> diskimage;      // built and uploaded by the builder
  std::optional<std::string> cloud_image;  // the name in the provider's section
  ConnectionSettings connection;           // from that image
  bool host_key_checking = true;

  LabelKey key() const { return {pool, name}; }

  virtual ~LabelConfig() = default;
};

struct PoolConfig {
  PoolName name;
  // Nodes of this pool; 0 or less disables it: it declines everything.
  double max_servers = kUnlimited;
  // max-cores, max-ram ... by resource name, without max-servers.
  Resources limits;
  int priority = 100;                  // the pool's, else the provider's, else 100
  boost::json::value node_attributes;  // null or an object, copied to each node
  bool ignore_provider_quota = false;
  bool use_internal_ip = false;
  bool host_key_checking = true;                // of labels that say nothing of it
  std::optional<Duration> recheck_interval;     // of ready nodes; none: they are not looked at again
  std::string recheck;                          // how: "tcp", "ssh", a command line; empty: by the record
  std::vector<std::string> availability_zones;  // empty: the provider's
  std::map<LabelName, std::shared_ptr<const LabelConfig>> labels;  // filled by Offer()

  // Adds a label, in place of an earlier one of that name. The pool has its name already.
  void Offer(std::shared_ptr<LabelConfig> label) {
    label->pool = name;
    labels[label->name] = std::move(label);
  }

  virtual ~PoolConfig() = default;

  // limits with max_servers as "instances".
  QuotaInformation Limit() const;
};

// An entry of a provider's `diskimages`: how an image of the builder is uploaded to this cloud. Drivers
// derive their own with their options.
struct ProviderDiskImage {
  ImageName name;
  bool is_paused = false;    // not uploaded
  boost::json::object meta;  // properties of the image in the cloud
  ConnectionSettings connection;

  virtual ~ProviderDiskImage() = default;
};

// A provider's section as its driver understands it; immutable.
struct ProviderConfig : config::ProviderSettings {
  ProviderName name;
  std::string driver;
  Duration boot_timeout = std::chrono::seconds(60);
  Duration launch_timeout = std::chrono::seconds(3600);
  int launch_retries = 3;  // attempts in total
  // For drivers that manage images (builder.md 11.2).
  bool manages_images = false;
  std::string image_format;                                    // the format in which the cloud takes images
  std::string image_name_format = "{image_name}-{timestamp}";  // names of images in the cloud
  Duration image_upload_timeout = std::chrono::seconds(3600);
  std::optional<std::string> post_upload_hook;  // path of a program that the builder runs
  int max_leaked_share = 50;  // percent of its images that one sweep may delete as leaked (D-99)
  std::map<ImageName, std::shared_ptr<const ProviderDiskImage>> diskimages;

  std::map<PoolName, std::shared_ptr<const PoolConfig>> pools;

  // Whether jobs on its machines can connect to the loopback interface of the host that this program runs on:
  // then nothing is granted for being local.
  bool reaches_this_host = false;

  // Everything the provider is made from, as one text: its section and what it refers to. Two configurations
  // are equal if their fingerprints are; a provider is replaced when its fingerprint changes
  // (configuration.md 9.7).
  std::string fingerprint;

  // Why the provider cannot be used although its section can be read, e.g. that the cloud which it names is
  // not described anywhere; empty: nothing is known. It does not start then, and the others do.
  std::string fault;

  virtual ~ProviderConfig() = default;
};

}  // namespace nodepool::driver
