#include "cli/web_address.h"

#include <fmt/format.h>

namespace nodepool::cli {

std::string WebAddress(const config::WebAppSettings& web, const std::string& hostname,
                       const std::string& own) {
  bool listens_everywhere =
      web.listen_address == "0.0.0.0" || web.listen_address == "::" || web.listen_address.empty();
  bool needs_name = web.tls || listens_everywhere || hostname != own;
  const std::string& host = needs_name ? hostname : web.listen_address;
  bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(is_ipv6 ? "{}://[{}]:{}/" : "{}://{}:{}/"), web.tls ? "https" : "http",
                     host, web.port);
}

}  // namespace nodepool::cli
