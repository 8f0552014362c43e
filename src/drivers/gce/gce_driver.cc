#include "drivers/gce/gce_driver.h"

#include "drivers/gce/config/gce_settings.h"
#include "drivers/gce/gce_adapter.h"

namespace nodepool::drivers {

GceDriver::GceDriver(std::optional<process::Environment> variables)
    : HttpDriver(Parts::Of<gce::GceAdapter>("gce", &gce::GceSchema, &gce::LoadGceConfig),
                 std::move(variables)) {}

}  // namespace nodepool::drivers
