#include "cli/server/exec_by_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "async/blocking_pool.h"
#include "base/text.h"
#include "base/version.h"
#include "net/http/curl_client.h"
#include "net/http/url.h"

namespace nodepool::cli {
namespace {

constexpr std::size_t kMaxToken = 1'000;

// nullopt: the file cannot be read.
std::optional<std::string> BeginOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxToken + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && file.fail()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool IsToken(std::string_view text) {
  auto is_visible = [](char letter) { return letter > ' ' && letter <= '~'; };
  return text.size() <= kMaxToken && text.find('.') != std::string_view::npos &&
         std::ranges::all_of(text, is_visible);
}

}  // namespace

std::string FaultOfServer(const std::string& text) {
  std::optional<net::Url> url = net::Url::Parse(text);
  bool is_http = url && (url->scheme() == "http" || url->scheme() == "https");
  if (!is_http || url->host().empty()) return "it is not an address such as https://nodepool.example.org";
  std::string whole = url->text();
  url->RemoveSecrets();
  return url->text() == whole ? "" : "an address without user, query and fragment is needed";
}

Expected<ServerAccess> AccessOf(const ServerOptions& options) {
  ServerAccess access{options.url, "", options.ca_path};
  while (access.url.ends_with('/')) access.url.pop_back();
  std::string place = kTokenVariable;
  if (options.token_file) {
    place = *options.token_file;
    std::optional<std::string> text = BeginOf(place);
    if (!text) return Unexpected(Verdict::kInvalid, fmt::format("{} cannot be read", place));
    access.token = Trim(*text);
  } else if (const char* value = std::getenv(kTokenVariable)) {
    access.token = Trim(value);
  }
  if (access.token.empty())
    return Unexpected(Verdict::kInvalid,
                      fmt::format("{} has no token; set ${} or give --token-file", place, kTokenVariable));
  if (!IsToken(access.token))
    return Unexpected(Verdict::kInvalid, fmt::format("What is in {} is no token: NAME.SECRET", place));
  return access;
}

Task<int> ExecByServer(Console& console, ServerOptions server, ExecOptions options) {
  Expected<ServerAccess> access = AccessOf(server);
  if (!access) {
    console.logger.Error("{}", access.error().message());
    co_return kExecFailed;
  }
  BlockingPool pool;
  net::CurlClient http(console.loop, pool, fmt::format("nodepool/{}", Version()));
  LeaseClient client(http, *access);
  LeaseClaim claim(console, client, options.wish, server.times);
  int status = co_await ExecOn(console, claim, options);
  co_return status;
}

}  // namespace nodepool::cli
