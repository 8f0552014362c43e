#include <boost/json/parse.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "drivers/openstack/catalog.h"
#include "drivers/openstack/cloud_config.h"
#include "drivers/openstack/faults.h"
#include "drivers/openstack/server.h"
#include "drivers/openstack/token.h"
#include "drivers/openstack/versions.h"
#include "net/http.h"
#include "net/http_client.h"

// Any bytes as the target of a web request or as the answer of a cloud: reading them
// ends with a result or with Error.

namespace {

template <class Read>
void Try(Read read) {
  try {
    read();
  } catch (const nodepool::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nodepool;
  namespace openstack = drivers::openstack;
  std::string_view text(reinterpret_cast<const char*>(data), size);

  net::HttpRequest request;
  if (net::ParseTarget(text, request) && !request.path.starts_with('/')) std::abort();
  net::UrlForLog(std::string(text));

  Try([&] { openstack::ReadVersions(text); });
  Try([&] { openstack::VersionUrl(std::string(text), {}, text); });
  for (int status : {200, 403, 413, 503}) openstack::MapFault("POST /servers", status, text);
  Try([&] { openstack::ReadToken({201, {{"x-subject-token", "t"}}, std::string(text)}); });

  boost::system::error_code malformed;
  boost::json::value value = boost::json::parse(text, malformed);
  if (malformed) return 0;
  if (value.is_object()) Try([&] { openstack::ReadServer(value.get_object()); });
  if (value.is_array())
    Try([&] {
      openstack::FindEndpoint(value.get_array(), openstack::CloudConfig(), openstack::Service::kCompute);
    });
  return 0;
}
