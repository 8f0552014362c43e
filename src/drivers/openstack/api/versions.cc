#include "drivers/openstack/api/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>

#include "base/json_fields.h"
#include "base/text.h"
#include "drivers/openstack/config/cloud_files.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

Version ReadVersion(const json::object& entry) {
  Version version;
  version.number = ParseVersion(TextIn(entry, "id"));
  std::string status = Lower(TextIn(entry, "status"));
  version.is_usable =
      status == "current" || status == "supported" || status == "stable" || status == "deprecated";
  std::string max = TextIn(entry, "max_version");
  if (max.empty()) max = TextIn(entry, "version");
  version.max = ParseVersion(max);
  version.min = ParseVersion(TextIn(entry, "min_version"));
  if (const json::array* links = ArrayIn(entry, "links")) {
    for (const json::value& link : *links) {
      if (link.is_object() && TextIn(link.as_object(), "rel") == "self") {
        version.path = PathOf(TextIn(link.as_object(), "href"));
      }
    }
  }
  return version;
}

}  // namespace

VersionNumber ParseVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  VersionNumber version;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, version.major);
  if (error != std::errc()) return {};
  if (rest != end && *rest == '.') {
    auto [last, minor_error] = std::from_chars(rest + 1, end, version.minor);
    if (minor_error != std::errc()) return {};
    rest = last;
  }
  return rest == end ? version : VersionNumber();
}

std::string ToString(VersionNumber version) { return fmt::format("{}.{}", version.major, version.minor); }

std::vector<Version> ReadVersions(std::string_view body) {
  std::vector<Version> versions;
  boost::system::error_code error;
  json::value document = json::parse(body, error);
  if (error) return versions;
  if (const json::object* one = ObjectIn(document, "version")) versions.push_back(ReadVersion(*one));
  const json::array* list = ArrayIn(document, "versions");
  if (const json::object* values = ObjectIn(document, "versions")) list = ArrayIn(*values, "values");
  if (list == nullptr) return versions;
  for (const json::value& entry : *list) {
    if (entry.is_object()) versions.push_back(ReadVersion(entry.as_object()));
  }
  return versions;
}

const Version* BestVersion(const std::vector<Version>& versions, int major) {
  const Version* best = nullptr;
  for (const Version& version : versions) {
    if (!version.is_usable || version.number.major != major) continue;
    if (best == nullptr || best->number < version.number) best = &version;
  }
  return best;
}

std::string OriginOf(std::string_view url) {
  std::size_t scheme = url.find("://");
  std::size_t path = url.find('/', scheme == std::string_view::npos ? 0 : scheme + 3);
  return std::string(url.substr(0, path));
}

std::string PathOf(std::string_view url) {
  std::string path(url.substr(OriginOf(url).size()));
  path = path.substr(0, path.find_first_of("?#"));
  while (path.ends_with('/')) path.pop_back();
  return path;
}

VersionNumber VersionOfPath(std::string_view path) {
  std::size_t slash = path.rfind('/');
  std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return last.starts_with('v') ? ParseVersion(last) : VersionNumber();
}

std::string VersionUrl(const std::string& asked, const Version& version, std::string_view otherwise) {
  std::string path = PathOf(asked);
  if (VersionOfPath(path) != VersionNumber()) path.resize(path.rfind('/'));
  std::string last(otherwise);
  if (VersionOfPath(version.path) != VersionNumber()) last = version.path.substr(version.path.rfind('/'));
  return OriginOf(asked) + path + last;
}

}  // namespace nodepool::drivers::openstack
