#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "model/component.h"
#include "net/http/http_client.h"

namespace nodepool::daemon {

// A question to the web server of a launcher.
struct LauncherQuestion {
  std::string hostname;
  WebServer server;
  std::string target;   // of the GET
  std::string ca_path;  // of who signed its certificate; empty: the system's authorities
  Duration timeout{};
  std::size_t max_bytes = 0;
};

// Where the launcher's web server is by our own configuration, for launchers that do not announce it.
WebServer ConfiguredServer(const config::WebAppSettings& settings);
std::string CaPath(const config::WebAppSettings& settings);

// The body of a good answer; throws on any failure. Redirections are failures.
Task<std::string> AskLauncher(std::shared_ptr<net::HttpClient> client, LauncherQuestion question);

}  // namespace nodepool::daemon
