#include <boost/json/parse.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "driver/cloud/api/credentials.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/gce/api/services.h"
#include "drivers/gce/compute/instance.h"
#include "drivers/gce/config/gce_config.h"

// Any bytes as an answer of Google Cloud: reading them ends with a result or with Error.

namespace {

using namespace nodepool;
namespace gce = drivers::gce;

void ReadObject(const boost::json::object& object) {
  gce::Operation operation = gce::ReadOperation(object);
  gce::MeaningOf(operation.code, operation.message);
  gce::MetricIn(operation.message);
  gce::GceInstance instance = gce::ReadInstance(object);
  if (instance.disk_size < 0) std::abort();
  gce::FittingLabels(instance.metadata);
  gce::MachineId id{instance.name, instance.zone, instance.number};
  gce::MachineId read = gce::ReadExternalId(gce::ExternalId(id, "zone"), "zone");
  bool is_same = read.name == id.name && read.attempt == id.attempt;
  if (!is_same) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (int status : {400, 401, 403, 404, 503}) {
    gce::ReadFault(status, text);
    driver::cloud::api::ReadTokenFault(status, text);
  }
  driver::cloud::api::LastSegment(std::string(text));
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(text, error);
  if (error) return 0;
  gce::ReadExternalId(value, "zone");
  if (value.is_object()) ReadObject(value.get_object());
  return 0;
}
