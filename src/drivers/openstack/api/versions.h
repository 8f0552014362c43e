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

// "2.93", "v2.1", "3"; {0, 0} if the text is not a version.
VersionNumber ParseVersion(std::string_view text);
std::string ToString(VersionNumber version);

// One version of a service's API, as its version document says.
struct Version {
  VersionNumber number;   // of the API
  bool is_usable = true;  // not experimental or withdrawn
  std::string path;       // the path of its own link
  // The range of its microversions; {0, 0}: it has none.
  VersionNumber min;
  VersionNumber max;
};

// The versions in a version document ({"versions": [...]}, also one level deeper as the identity service
// writes it, or {"version": {...}}); empty if it is not a version document.
std::vector<Version> ReadVersions(std::string_view body);

// The highest usable one with that major number, or null.
const Version* BestVersion(const std::vector<Version>& versions, int major);

// The URL of that version, given the URL that listed it: links often have a wrong host, so only the last part
// of their path is used; `otherwise` if there is none.
std::string VersionUrl(const std::string& asked, const Version& version, std::string_view otherwise);

// scheme://host:port of a URL, and its path without trailing slashes.
std::string OriginOf(std::string_view url);
std::string PathOf(std::string_view url);

// The version at the end of a URL's path: v2, v2.1 and so on.
VersionNumber VersionOfPath(std::string_view path);

}  // namespace nodepool::drivers::openstack
