#include "base/error.h"
#include "base/text.h"
#include "driver/driver.h"

namespace nodepool::driver {

void Registry::Add(std::unique_ptr<Driver> driver, std::string origin) {
  std::string name(driver->name());
  if (name.empty()) throw Error(Verdict::kInvalid, "a driver of " + origin + " has no name");
  auto [entry, is_new] = drivers_.try_emplace(name);
  if (!is_new) {
    throw Error(Verdict::kInvalid, "driver '" + Excerpt(name) + "' of " + origin +
                                       " exists already: it comes from " + entry->second.origin +
                                       "; rename one of them");
  }
  entry->second = {std::move(driver), std::move(origin)};
}

Driver* Registry::Find(std::string_view name) const {
  auto found = drivers_.find(name);
  return found == drivers_.end() ? nullptr : found->second.driver.get();
}

std::vector<std::string> Registry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : drivers_) names.push_back(name);
  return names;
}

std::map<std::string, std::string> Registry::NamesByFile() const {
  std::map<std::string, std::string> names;
  for (const auto& [name, entry] : drivers_) {
    if (entry.origin != kThisProgram) names.emplace(entry.origin, name);
  }
  return names;
}

}  // namespace nodepool::driver
