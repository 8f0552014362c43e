#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nodepool::drivers::openstack {

struct VersionNumber {
  int major = 0;
  int minor = 0;
  auto operator<=>(const VersionNumber&) const = default;
};

// "2.93", "v2.1", "3"; {0, 0} when it is none.
VersionNumber ParseVersion(std::string_view text);
std::string ToString(VersionNumber version);

// One version of a service's API, as its version document says.
struct Version {
  VersionNumber number;   // of the API
  bool is_usable = true;  // not experimental or withdrawn
  std::string path;       // of its own link
  // The microversions it takes; {0, 0} without.
  VersionNumber least;
  VersionNumber most;
};

// Those of a version document ({"versions": [...]}, also one level deeper as the
// identity service writes it, or {"version": {...}}); empty when it is none.
std::vector<Version> ReadVersions(std::string_view body);

// The highest usable one with that major number, or null.
const Version* BestVersion(const std::vector<Version>& versions, int major);

// Where that version is, given the address that listed it: its links often carry a
// wrong host, so only the last part of their path counts, `otherwise` without one.
std::string VersionUrl(const std::string& asked, const Version& version, std::string_view otherwise);

// scheme://host:port of a URL, and its path without trailing slashes.
std::string OriginOf(std::string_view url);
std::string PathOf(std::string_view url);

// A URL's path is versioned: its last part is v2, v2.1 and so on.
VersionNumber VersionOfPath(std::string_view path);

}  // namespace nodepool::drivers::openstack
