#include "drivers/schemas/known_drivers.h"

#include <map>

#include "drivers/libvirt_schema.h"
#include "drivers/schemas/tables.h"

namespace nodepool::drivers {
namespace {

const std::map<std::string_view, config::Schema>& Schemas() {
  using config::Schema;
  static const std::map<std::string_view, Schema> schemas = {
      {"azure", Schema::Any()},
      {"ibmvpc", Schema::Any()},
      {"libvirt", LibvirtSchema()},
      {"test", TestSchema()},
  };
  return schemas;
}

}  // namespace

const config::Schema* KnownDriverSchema(std::string_view driver) {
  auto found = Schemas().find(driver);
  return found == Schemas().end() ? nullptr : &found->second;
}

std::vector<std::string_view> KnownDriverNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, schema] : Schemas()) names.push_back(name);
  return names;
}

}  // namespace nodepool::drivers
