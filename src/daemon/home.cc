#include "daemon/home.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

namespace nodepool::daemon {
namespace {

std::optional<std::string> HomeOf(const std::string& user) {
  if (const char* home = std::getenv("HOME"); user.empty() && home != nullptr) return home;
  const passwd* entry = user.empty() ? ::getpwuid(::getuid()) : ::getpwnam(user.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->pw_dir;
}

}  // namespace

std::string ExpandHome(const std::string& path) {
  if (!path.starts_with('~')) return path;
  std::size_t end = std::min(path.find('/'), path.size());
  std::optional<std::string> home = HomeOf(path.substr(1, end - 1));
  if (!home) return path;
  while (home->ends_with('/')) home->pop_back();
  std::string expanded = *home + path.substr(end);
  return expanded.empty() ? "/" : expanded;
}

}  // namespace nodepool::daemon
