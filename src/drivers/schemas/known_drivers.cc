#include "drivers/schemas/known_drivers.h"

#include <map>

#include "drivers/libvirt_schema.h"
#include "drivers/provider_section.h"

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

Schema TestSchema() {
  Bindings<driver::PoolConfig> pool =
      PoolSettings()
          .With(driver::OptionalPoolName())
          .With({Setting("labels", Schema::List(Schema::String()), "The labels offered here.")});
  return Schema::Map({Setting("pools", Schema::List(pool.ToSchema()), "Groups of nodes.")});
}

}  // namespace nodepool::drivers
