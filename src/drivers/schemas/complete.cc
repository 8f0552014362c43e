#include "drivers/provider_section.h"
#include "drivers/schemas/tables.h"

namespace nodepool::drivers {

Schema TestSchema() {
  Bindings<driver::PoolConfig> pool =
      PoolSettings()
          .With(driver::OptionalPoolName())
          .With({Setting("labels", Schema::List(Schema::String()), "The labels offered here.")});
  return Schema::Map({Setting("pools", Schema::List(pool.ToSchema()), "Groups of nodes.")});
}

}  // namespace nodepool::drivers
