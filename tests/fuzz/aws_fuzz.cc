#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/api/services.h"
#include "drivers/aws/compute/disks.h"
#include "drivers/aws/compute/instance.h"
#include "drivers/aws/credentials/credentials.h"

// Any bytes as an answer of AWS, or as a file of its credentials: reading them ends with a result or with
// Error.

namespace {

using namespace nodepool;
namespace aws = drivers::aws;

template <class Read>
void Try(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void ReadLists(std::string_view text) {
  pugi::xml_document document = aws::ParseXml(text, "a call");
  pugi::xml_node root = document.document_element();
  for (const aws::Ec2Instance& instance : aws::ReadReservations(root)) {
    if (instance.id.empty()) std::abort();
    aws::CodeOfType(instance.type, instance.is_spot);
    aws::MeansNoCapacity(instance.reason_code);
  }
  for (const aws::TypeSize& type : aws::ReadTypes(root)) {
    if (type.ram < 0 || type.cores < 0 || type.vcpus < 0) std::abort();
  }
  for (const aws::Volume& volume : aws::ReadVolumes(root)) {
    if (volume.size < 0 || volume.iops < 0) std::abort();
  }
  std::vector<aws::MachineImage> images = aws::ReadImages(root);
  for (const aws::MachineImage& image : images) image.Root();
  aws::NewestAvailable(images);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (int status : {400, 503}) {
    aws::ReadFault(status, text);
    aws::ReadJsonFault(status, text);
  }
  Try([&] { ReadLists(text); });
  Try([&] { aws::ReadCredentials(text, "a source"); });
  Try([&] { aws::ParseIni(text); });
  net::HttpCall call;
  call.url = "https://host/" + std::string(text);
  call.headers = {{"X-Any", std::string(text)}};
  for (const char* service : {"ec2", "s3"}) Try([&] { aws::CanonicalRequest(call, {"a-region", service}); });
  return 0;
}
