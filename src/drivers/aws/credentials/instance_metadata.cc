#include "drivers/aws/credentials/instance_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "async/attempt.h"
#include "base/text.h"

namespace nodepool::drivers::aws {
namespace {

constexpr std::size_t kMaxMetadata = 64 * 1024;
constexpr const char* kRoles = "/latest/meta-data/iam/security-credentials/";

int PositiveNumber(const std::string& text, int otherwise) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number > 0 ? std::min(number, 60) : otherwise;
}

Error NoCredentials(const MetadataSettings& settings, std::string_view why) {
  return Error(
      Verdict::kInvalid,
      fmt::format("there are no AWS credentials: not in the environment, not in the shared files, not of a "
                  "container, and the instance metadata service at {} gives none: {}",
                  settings.url, why));
}

net::HttpCall MetadataCall(const MetadataSettings& settings, const char* method, const std::string& path,
                           const std::string& token) {
  net::HttpCall call;
  call.method = method;
  call.url = settings.url + path;
  call.uses_proxy = false;
  call.max_bytes = kMaxMetadata;
  call.timeouts = {settings.timeout, settings.timeout, settings.timeout, settings.timeout};
  if (!token.empty()) call.headers.emplace_back("X-aws-ec2-metadata-token", token);
  return call;
}

Task<net::HttpReply> SendSeveralTimes(net::HttpClient& http, net::HttpCall call, int attempts) {
  for (int attempt = 1;; ++attempt) {
    net::HttpCall next = call;
    Outcome<net::HttpReply> reply = co_await Attempt(http.Send(std::move(next)));
    bool is_good = reply && reply->status < 500;
    if (is_good || attempt >= attempts) {
      if (!reply) reply.error().Rethrow();
      co_return std::move(*reply);
    }
  }
}

// Empty: the service gives none, and may speak version 1.
Task<std::string> FetchToken(net::HttpClient& http, const MetadataSettings& settings) {
  net::HttpCall call = MetadataCall(settings, "PUT", "/latest/api/token", "");
  call.headers.emplace_back("X-aws-ec2-metadata-token-ttl-seconds", "21600");
  Outcome<net::HttpReply> reply =
      co_await Attempt(SendSeveralTimes(http, std::move(call), settings.attempts));
  if (!reply) co_return "";
  if (reply->status == 400) throw NoCredentials(settings, "it refuses to give a token");
  co_return reply->status == 200 ? std::string(Trim(reply->body)) : std::string();
}

Task<std::string> ReadMetadata(net::HttpClient& http, const MetadataSettings& settings, std::string path,
                               std::string token) {
  net::HttpCall call = MetadataCall(settings, "GET", path, token);
  Outcome<net::HttpReply> reply =
      co_await Attempt(SendSeveralTimes(http, std::move(call), settings.attempts));
  if (!reply) throw NoCredentials(settings, reply.error().message());
  if (reply->status != 200) throw NoCredentials(settings, fmt::format("{}: status {}", path, reply->status));
  co_return std::move(reply->body);
}

}  // namespace

MetadataSettings MetadataSettingsOf(const Variables& variables, std::string url) {
  MetadataSettings settings{.url = std::move(url)};
  settings.timeout =
      std::chrono::seconds(PositiveNumber(VariableIn(variables, "AWS_METADATA_SERVICE_TIMEOUT"), 1));
  settings.attempts = PositiveNumber(VariableIn(variables, "AWS_METADATA_SERVICE_NUM_ATTEMPTS"), 1);
  return settings;
}

Task<Credentials> FetchFromMetadata(net::HttpClient& http, MetadataSettings settings) {
  std::string token = co_await FetchToken(http, settings);
  std::string path = kRoles;
  std::string roles = co_await ReadMetadata(http, settings, path, token);
  std::string role(Trim(std::string_view(roles).substr(0, roles.find('\n'))));
  if (role.empty()) throw NoCredentials(settings, "the instance has no role");
  path += role;
  std::string answer = co_await ReadMetadata(http, settings, path, token);
  co_return ReadCredentials(answer, "the instance metadata service at " + settings.url);
}

}  // namespace nodepool::drivers::aws
