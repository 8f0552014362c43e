#include "drivers/provider_section.h"
#include "drivers/schemas/tables.h"

namespace nodepool::drivers {

using config::Schema;
using config::Setting;

Schema TestSchema() {
  Schema pool = Schema::Map({
      Setting("name", Schema::String(), "Name of the pool."),
      Setting("labels", Schema::List(Schema::String()), "The labels offered here."),
  });
  return Schema::Map({Setting("pools", Schema::List(pool.With(PoolSettings())), "Groups of nodes.")});
}

}  // namespace nodepool::drivers
