#include "base/error.h"
#include "base/text.h"
#include "driver/driver.h"

namespace nodepool::driver {

void Registry::Add(std::unique_ptr<Driver> driver) {
  std::string name(driver->name());
  if (drivers_.contains(name)) {
    throw Error(Verdict::kInvalid, "driver '" + Excerpt(name) + "' is registered twice; rename one of them");
  }
  drivers_.emplace(std::move(name), std::move(driver));
}

Driver* Registry::Find(std::string_view name) const {
  auto found = drivers_.find(name);
  return found == drivers_.end() ? nullptr : found->second.get();
}

std::vector<std::string> Registry::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, driver] : drivers_) names.push_back(name);
  return names;
}

}  // namespace nodepool::driver
