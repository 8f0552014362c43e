#include "daemon/web_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "net/http/http.h"

namespace nodepool::daemon {

namespace {

constexpr std::size_t kFirstBuffer = 1024;
constexpr std::size_t kLargestBuffer = 1 << 20;

std::optional<HostEntry> LookUp(const void* address, socklen_t size, int family) {
  hostent entry{};
  hostent* found = nullptr;
  int fault = 0;
  std::vector<char> buffer(kFirstBuffer);
  while (gethostbyaddr_r(address, size, family, &entry, buffer.data(), buffer.size(), &found, &fault) ==
             ERANGE &&
         buffer.size() < kLargestBuffer) {
    buffer.resize(buffer.size() * 2);
  }
  if (found == nullptr || found->h_name == nullptr) return std::nullopt;
  HostEntry result{found->h_name, {}};
  for (char** alias = found->h_aliases; alias != nullptr && *alias != nullptr; ++alias)
    result.aliases.emplace_back(*alias);
  return result;
}

// For the first address of the name.
std::optional<HostEntry> LookUp(const std::string& name) {
  addrinfo hints{};
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) return std::nullopt;
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  if (found->ai_family == AF_INET) {
    const auto* place = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    return LookUp(&place->sin_addr, sizeof(place->sin_addr), AF_INET);
  }
  if (found->ai_family == AF_INET6) {
    const auto* place = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
    return LookUp(&place->sin6_addr, sizeof(place->sin6_addr), AF_INET6);
  }
  return std::nullopt;
}

}  // namespace

std::string WholeHostname() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string Hostname() {
  std::string name = WholeHostname();
  return name.substr(0, name.find('.'));
}

std::string QualifiedName(const HostEntry& entry) {
  auto has_dot = [](const std::string& name) { return name.find('.') != std::string::npos; };
  if (has_dot(entry.canonical)) return entry.canonical;
  auto alias = std::ranges::find_if(entry.aliases, has_dot);
  return alias != entry.aliases.end() ? *alias : entry.canonical;
}

std::string FullyQualifiedHostname(Duration limit) {
  std::string name = WholeHostname();
  std::packaged_task<std::optional<HostEntry>()> lookup([name] { return LookUp(name); });
  std::future<std::optional<HostEntry>> answer = lookup.get_future();
  // The resolver cannot be interrupted. A thread blocked in it for longer uses none of our data.
  std::thread(std::move(lookup)).detach();
  if (answer.wait_for(limit) != std::future_status::ready) return name;
  std::optional<HostEntry> entry = answer.get();
  return entry ? QualifiedName(*entry) : name;
}

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

WebServer ConfiguredServer(const config::WebAppSettings& settings) {
  return {settings.port, settings.tls.has_value()};
}

std::string CaPath(const config::WebAppSettings& settings) { return settings.tls ? settings.tls->ca : ""; }

Task<std::string> AskLauncher(std::shared_ptr<net::HttpClient> client, LauncherQuestion question) {
  net::HttpCall call;
  call.url = question.address + question.target.substr(1);
  if (question.address.starts_with("https:")) {
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
    throw Error(Verdict::kFail, fmt::format("{} answers {} {}", question.address, reply.status,
                                            net::HttpReason(reply.status)));
  }
  co_return std::move(reply.body);
}

}  // namespace nodepool::daemon
