#include "daemon/ask_launcher.h"

#include <fmt/format.h>

#include "net/http/http.h"

namespace nodepool::daemon {

WebServer ConfiguredServer(const config::WebAppSettings& settings) {
  return {settings.port, settings.tls.has_value()};
}

std::string CaPath(const config::WebAppSettings& settings) { return settings.tls ? settings.tls->ca : ""; }

Task<std::string> AskLauncher(std::shared_ptr<net::HttpClient> client, LauncherQuestion question) {
  net::HttpCall call;
  const WebServer& server = question.server;
  call.url = fmt::format("{}://{}:{}{}", server.has_tls ? "https" : "http", question.hostname, server.port,
                         question.target);
  if (server.has_tls) {
    net::TlsSettings tls;
    tls.ca_path = question.ca_path;
    call.tls = std::make_shared<const net::TlsSettings>(std::move(tls));
  }
  call.headers = {{"Accept", "application/json"}};
  call.timeouts.total = question.timeout;
  call.max_bytes = question.max_bytes;
  call.uses_proxy = false;
  call.follows_redirects = false;
  net::HttpReply reply = co_await client->Send(std::move(call));
  if (reply.status != 200) {
    throw Error(Verdict::kFail, fmt::format("port {} answers {} {}", server.port, reply.status,
                                            net::HttpReason(reply.status)));
  }
  co_return std::move(reply.body);
}

}  // namespace nodepool::daemon
