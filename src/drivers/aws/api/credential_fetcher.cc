#include "drivers/aws/api/credential_fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "async/task.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/small_file.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/credentials.h"
#include "drivers/aws/api/service_calls.h"
#include "net/http/http_client.h"
#include "process/command.h"

namespace nodepool::drivers::aws {

namespace {

// The service on each instance that gives it the credentials of its role (driver-aws.md 3.4).
struct MetadataSettings {
  std::string url;
  Duration timeout = std::chrono::seconds(1);  // of each attempt
  int attempts = 1;
};

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
  net::HttpCall call = driver::cloud::api::LocalCall(settings.url + path, settings.timeout);
  call.method = method;
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

MetadataSettings MetadataSettingsOf(const Variables& variables, std::string url) {
  MetadataSettings settings{.url = std::move(url)};
  settings.timeout =
      std::chrono::seconds(PositiveNumber(VariableIn(variables, "AWS_METADATA_SERVICE_TIMEOUT"), 1));
  settings.attempts = PositiveNumber(VariableIn(variables, "AWS_METADATA_SERVICE_NUM_ATTEMPTS"), 1);
  return settings;
}

// By version 2, or by version 1 where the service has no tokens. Error(kInvalid): it has no credentials, or
// there is no such service: no other source has any, either.
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

constexpr const char* kStsVersion = "2011-06-15";
constexpr std::size_t kMaxAnswer = 1 << 20;
constexpr int kContainerAttempts = 3;
constexpr Duration kContainerTimeout = std::chrono::seconds(2);

Credentials ReadStsAnswer(const net::HttpReply& reply, const std::string& action) {
  pugi::xml_document document = ParseXml(reply.body, "STS " + action, RequestIdOf(reply));
  std::string result = action + "Result";
  pugi::xml_node node = document.document_element().child(result.c_str()).child("Credentials");
  Credentials credentials{.key_id = TextAt(node, {"AccessKeyId"}),
                          .secret = TextAt(node, {"SecretAccessKey"}),
                          .session_token = TextAt(node, {"SessionToken"})};
  std::optional<WallTime> expires = ParseIso8601(TextAt(node, {"Expiration"}));
  if (credentials.key_id.empty() || credentials.secret.empty() || !expires) {
    throw Error(Verdict::kRetry, fmt::format("STS answered {} without credentials", action));
  }
  credentials.expires = *expires;
  return credentials;
}

// `what`: "STS AssumeRole for arn:...".
[[noreturn]] void ThrowStsRefusal(const std::string& what, const net::HttpReply& reply) {
  driver::cloud::api::Fault fault = ReadFault(reply.status, reply.body);
  if (fault.request_id.empty()) fault.request_id = RequestIdOf(reply);
  throw MakeApiError(what, reply.status, std::move(fault));
}

Query RoleQuery(const char* action, const Role& role, WallTime now) {
  Query query(action);
  query.Add("RoleArn", role.arn);
  std::string session = role.session_name;
  if (session.empty()) session = fmt::format("nodepool-{}", static_cast<std::int64_t>(ToSeconds(now)));
  query.Add("RoleSessionName", session);
  query.Add("DurationSeconds", role.seconds);
  return query;
}

}  // namespace

CredentialFetcher::CredentialFetcher(Loop& loop, net::HttpClient& http, ServerClock& clock,
                                     const Account& account, Variables variables, bool is_named)
    : loop_(loop),
      http_(http),
      clock_(clock),
      account_(account),
      variables_(std::move(variables)),
      is_named_(is_named) {}

Task<Credentials> CredentialFetcher::Fetch() {
  Profiles profiles = ReadProfiles(variables_);
  CredentialPlan plan = PlanCredentials(profiles, variables_, account_.profile, is_named_);
  std::vector<Role> roles = plan.roles;
  Credentials credentials = co_await FetchFirst(std::move(plan));
  for (const Role& role : roles) {
    Role next = role;
    credentials = co_await Assume(std::move(next), std::move(credentials));
  }
  co_return credentials;
}

Task<Credentials> CredentialFetcher::FetchFirst(CredentialPlan plan) {
  switch (plan.source) {
    case CredentialPlan::Source::kKeys:
      co_return std::move(plan.keys);
    case CredentialPlan::Source::kWebIdentity:
      co_return co_await FromWebIdentity(std::move(plan));
    case CredentialPlan::Source::kProcess:
      co_return co_await FromProcess(std::move(plan));
    case CredentialPlan::Source::kContainer:
      co_return co_await FromContainer(std::move(plan));
    case CredentialPlan::Source::kInstanceMetadata:
      break;
  }
  MetadataSettings settings = MetadataSettingsOf(variables_, plan.url);
  co_return co_await FetchFromMetadata(http_, std::move(settings));
}

Task<Credentials> CredentialFetcher::FromWebIdentity(CredentialPlan plan) {
  Query query = RoleQuery("AssumeRoleWithWebIdentity", plan.web_role, clock_.Now());
  query.Add("WebIdentityToken", ReadTextFile(plan.token_file));
  net::HttpCall call = FormCall(account_.sts_url, query, kStsVersion, account_.tls);
  call.max_bytes = kMaxAnswer;
  std::string what = "STS AssumeRoleWithWebIdentity for " + plan.web_role.arn;
  net::HttpReply reply = co_await SendToSts(std::move(call), what);
  if (reply.status >= 400) ThrowStsRefusal(what, reply);
  co_return ReadStsAnswer(reply, "AssumeRoleWithWebIdentity");
}

Task<net::HttpReply> CredentialFetcher::SendToSts(net::HttpCall call, std::string what) {
  Outcome<net::HttpReply> reply = co_await Attempt(http_.Send(std::move(call)));
  if (!reply) driver::cloud::api::ThrowWithoutAnswer(what, RemediesOf(account_), reply.error());
  co_return std::move(*reply);
}

Task<Credentials> CredentialFetcher::Assume(Role role, Credentials source) {
  Query query = RoleQuery("AssumeRole", role, clock_.Now());
  if (!role.external_id.empty()) query.Add("ExternalId", role.external_id);
  std::string what = "STS AssumeRole for " + role.arn;
  net::HttpReply reply;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    net::HttpCall call = FormCall(account_.sts_url, query, kStsVersion, account_.tls);
    call.max_bytes = kMaxAnswer;
    SigningScope scope{account_.region, kSts.name};
    for (auto& header : SignatureHeaders(call, source, scope, clock_.Now())) call.headers.push_back(header);
    reply = co_await SendToSts(std::move(call), what);
    bool is_refused =
        reply.status >= 400 && ReadFault(reply.status, reply.body).refuses_signature.value_or(false);
    if (!is_refused) break;
    clock_.CorrectAfter(reply, "STS AssumeRole", RequestIdOf(reply));
  }
  if (reply.status >= 400) ThrowStsRefusal(what, reply);
  co_return ReadStsAnswer(reply, "AssumeRole");
}

Task<Credentials> CredentialFetcher::FromProcess(CredentialPlan plan) {
  process::SystemRunner runner(loop_);
  process::Command command;
  command.argv = process::SplitWords(plan.command);
  command.environment = variables_;
  process::Exit exit = co_await runner.Run(std::move(command));
  std::string source = "credential_process of " + plan.origin;
  if (!exit.is_good()) {
    throw Error(Verdict::kRetry, fmt::format("{} failed with exit status {}", source, exit.code));
  }
  std::size_t begin = exit.output.find('{');
  std::size_t end = exit.output.rfind('}');
  bool has_object = begin != std::string::npos && end != std::string::npos && begin < end;
  std::string text = has_object ? exit.output.substr(begin, end - begin + 1) : "";
  co_return ReadCredentials(text, source, {.session_token = "SessionToken"});
}

Task<Credentials> CredentialFetcher::FromContainer(CredentialPlan plan) {
  net::HttpCall call = driver::cloud::api::LocalCall(plan.url, kContainerTimeout);
  std::string header = plan.header_file.empty() ? plan.header : ReadTextFile(plan.header_file);
  if (!header.empty()) call.headers.emplace_back("Authorization", header);
  std::string last;
  for (int attempt = 1; attempt <= kContainerAttempts; ++attempt) {
    net::HttpCall next = call;
    Outcome<net::HttpReply> reply = co_await Attempt(http_.Send(std::move(next)));
    if (reply && reply->status == 200) co_return ReadCredentials(reply->body, plan.origin);
    last = reply ? fmt::format("status {}", reply->status) : reply.error().message();
  }
  throw Error(Verdict::kRetry, fmt::format("the container's credentials at {} could not be read: {}",
                                           net::UrlForLog(plan.url), last));
}

}  // namespace nodepool::drivers::aws
