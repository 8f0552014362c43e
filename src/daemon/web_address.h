#pragma once

#include <string>

#include "config/config.h"
#include "model/component.h"

namespace nodepool::daemon {

// The URL, ending in "/", at which the host `own` reaches the web server of the launcher on `hostname`.
// Listen addresses are not announced: `web`, our own configuration, is supposed to be this host's. If it has
// one address, the server of this host is reached there and not at the host's name; unless the server has a
// certificate, which names the host.
std::string WebAddress(const config::WebAppSettings& web, const WebServer& server,
                       const std::string& hostname, const std::string& own);
// The same for the server of our configuration, e.g. of launchers that do not announce theirs.
std::string WebAddress(const config::WebAppSettings& web, const std::string& hostname,
                       const std::string& own);

}  // namespace nodepool::daemon
