#include "daemon/web_address.h"

#include <fmt/format.h>

#include "daemon/ask_launcher.h"

namespace nodepool::daemon {

std::string WebAddress(const config::WebAppSettings& web, const WebServer& server,
                       const std::string& hostname, const std::string& own) {
  bool listens_everywhere =
      web.listen_address == "0.0.0.0" || web.listen_address == "::" || web.listen_address.empty();
  bool needs_name = server.has_tls || listens_everywhere || hostname != own;
  const std::string& host = needs_name ? hostname : web.listen_address;
  bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_ipv6 ? "{}://[{}]:{}/" : "{}://{}:{}/"),
                     server.has_tls ? "https" : "http", host, server.port);
}

std::string WebAddress(const config::WebAppSettings& web, const std::string& hostname,
                       const std::string& own) {
  return WebAddress(web, ConfiguredServer(web), hostname, own);
}

}  // namespace nodepool::daemon
