#include <boost/json/parse.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "drivers/openstack/api/session.h"
#include "drivers/openstack/api/versions.h"
#include "drivers/openstack/compute/server.h"
#include "drivers/openstack/config/cloud_config.h"
#include "drivers/openstack/network/networks.h"
#include "net/http/http.h"
#include "net/http/http_client.h"
#include "web/api/api.h"
#include "web/api/api_fields.h"
#include "web/lists/recent_answers.h"

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

// What a list of the cloud may hold, and what is made of it.
void TryRecord(const boost::json::object& record) {
  using namespace nodepool;
  namespace openstack = drivers::openstack;
  openstack::NetworkRoles roles{.external_ipv4 = {"public"}, .internal_ipv4 = {"private"}};
  openstack::CloudConfig cloud;
  for (bool is_private : {false, true}) {
    cloud.is_private = is_private;
    openstack::Server server = openstack::ReadServer(record);
    openstack::ChosenAddresses chosen = openstack::ChooseAddresses(server, roles, cloud, true);
    openstack::NeedsFloatingIp(server, chosen, roles, cloud);
  }
  openstack::Port port = openstack::ReadPort(record);
  Try([&] { openstack::ChooseTarget({port, port}, roles); });
  Try([&] { openstack::ChooseTarget({port}, roles); });
  openstack::ApiReply page{200, {{"link", TextIn(record, "link")}}, record};
  Try([&] { openstack::NextQuery(page, "servers"); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nodepool;
  namespace openstack = drivers::openstack;
  std::string_view text(reinterpret_cast<const char*>(data), size);

  net::HttpRequest request;
  if (net::ParseTarget(text, request)) {
    if (!request.path.starts_with('/')) std::abort();
    Expected<web::Query> query = web::ReadQuery(request, web::NodeFields().type().fields);
    if (query && query->limit > web::Query::kMaxEntries) std::abort();
  }
  web::ChooseFormat(text);
  ParseHttpDate(std::string(text));
  net::UrlForLog(std::string(text));

  Try([&] { openstack::ReadVersions(text); });
  Try([&] { openstack::VersionUrl(std::string(text), {}, text); });
  for (int status : {200, 403, 413, 503}) openstack::ReadFault(status, text);
  Try([&] { openstack::ReadToken({201, {{"x-subject-token", "t"}}, std::string(text)}, "cloud"); });

  boost::system::error_code malformed;
  boost::json::value value = boost::json::parse(text, malformed);
  if (malformed) return 0;
  if (value.is_object()) TryRecord(value.get_object());
  if (value.is_array())
    Try([&] {
      openstack::FindEndpoint(value.get_array(), openstack::CloudConfig(), openstack::Service::kCompute);
    });
  return 0;
}
