#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "config/config.h"
#include "model/component.h"
#include "net/http/http_client.h"

namespace nodepool::daemon {

// Names of this host.

// The operating system's host name up to the first dot.
std::string Hostname();
// The operating system's host name.
std::string WholeHostname();

// The answer to a reverse look-up of an address.
struct HostEntry {
  std::string canonical;
  std::vector<std::string> aliases;
};

// The first name with a dot, else the canonical one.
std::string QualifiedName(const HostEntry& entry);

// The same as socket.getfqdn() of Python, which other programs write to records and metrics: the qualified
// name of the host name's address. Returns the host name if the resolver does not know it or takes longer
// than `limit`. Blocks.
std::string FullyQualifiedHostname(Duration limit = std::chrono::seconds(5));

// The URL, ending in "/", at which the host `own` reaches the web server of the launcher on `hostname`.
// Listen addresses are not announced: `web`, our own configuration, is supposed to be this host's. If it has
// one address, the server of this host is reached there and not at the host's name; unless the server has a
// certificate, which names the host.
std::string WebAddress(const config::WebAppSettings& web, const WebServer& server,
                       const std::string& hostname, const std::string& own);
// The same for the server of our configuration, e.g. of launchers that do not announce theirs.
std::string WebAddress(const config::WebAppSettings& web, const std::string& hostname,
                       const std::string& own);

// A question to the web server of a launcher.
struct LauncherQuestion {
  std::string address;  // its URL, ending in "/" (web_address.h)
  std::string target;   // of the GET, beginning with "/"
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
