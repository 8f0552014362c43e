#include "drivers/aws/credentials/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/time_text.h"
#include "net/http/url.h"

namespace nodepool::drivers::aws {

Credentials ReadCredentials(std::string_view text, std::string_view source, CredentialNames names) {
  auto refuse = [&source](std::string_view why) {
    return Error(Verdict::kInvalid, fmt::format("{} gives no credentials: {}", source, why));
  };
  boost::system::error_code malformed;
  boost::json::value parsed = boost::json::parse(text, malformed);
  if (malformed || !parsed.is_object()) throw refuse("its answer is not a JSON object");
  const boost::json::object& answer = parsed.get_object();
  std::string code = TextIn(answer, "Code");
  if (!code.empty() && code != "Success") throw refuse(Excerpt(code + ": " + TextIn(answer, "Message")));
  Credentials credentials;
  credentials.key_id = TextIn(answer, "AccessKeyId");
  credentials.secret = TextIn(answer, "SecretAccessKey");
  credentials.session_token = TextIn(answer, names.session_token);
  if (credentials.key_id.empty() || credentials.secret.empty()) throw refuse("its answer contains no keys");
  std::string expires = TextIn(answer, "Expiration");
  if (expires.empty()) return credentials;
  std::optional<WallTime> time = ParseIso8601(expires);
  if (!time) throw refuse("the time of their expiry is malformed");
  credentials.expires = *time;
  return credentials;
}

namespace {

using Source = CredentialPlan::Source;

constexpr const char* kContainerHost = "http://169.254.170.2";
constexpr const char* kMetadataHost = "http://169.254.169.254";
constexpr const char* kMetadataHost6 = "http://[fd00:ec2::254]";

Error Refusal(std::string message) { return Error(Verdict::kInvalid, std::move(message)); }

// The token in the header must not go to other hosts in plain text.
bool MayGiveCredentials(const std::string& url) {
  std::optional<net::Url> parsed = net::Url::Parse(url);
  if (!parsed) return false;
  if (parsed->scheme() == "https") return true;
  static const std::set<std::string, std::less<>> near = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]",
                                                          "localhost", "[::1]"};
  std::string host = parsed->host();
  bool is_loopback = host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return parsed->scheme() == "http" && (near.contains(host) || is_loopback);
}

class Planner {
 public:
  Planner(const Profiles& profiles, const Variables& variables)
      : profiles_(profiles), variables_(variables) {}

  CredentialPlan Plan(const std::string& profile, bool is_named) {
    if (!is_named && (Has("AWS_ACCESS_KEY_ID") || Has("AWS_SECRET_ACCESS_KEY"))) return FromEnvironment();
    if (std::optional<CredentialPlan> plan = FromProfile(profile)) return *plan;
    if (!is_named && Has("AWS_ROLE_ARN") && Has("AWS_WEB_IDENTITY_TOKEN_FILE")) return FromWebIdentity();
    return FromSurroundings();
  }

 private:
  bool Has(const char* variable) const { return !Variable(variable).empty(); }
  std::string Variable(const char* name) const { return VariableIn(variables_, name); }

  CredentialPlan FromEnvironment() const {
    CredentialPlan plan{.source = Source::kKeys, .origin = "the environment"};
    plan.keys.key_id = Variable("AWS_ACCESS_KEY_ID");
    plan.keys.secret = Variable("AWS_SECRET_ACCESS_KEY");
    plan.keys.session_token = Variable("AWS_SESSION_TOKEN");
    if (plan.keys.session_token.empty()) plan.keys.session_token = Variable("AWS_SECURITY_TOKEN");
    if (plan.keys.key_id.empty() || plan.keys.secret.empty()) {
      throw Refusal("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set");
    }
    std::string expires = Variable("AWS_CREDENTIAL_EXPIRATION");
    if (auto time = ParseIso8601(expires)) plan.keys.expires = *time;
    return plan;
  }

  // None: the profile says nothing about credentials.
  std::optional<CredentialPlan> FromProfile(const std::string& profile) {
    if (!seen_.insert(profile).second) {
      throw Refusal(
          fmt::format("profile {} is its own source_profile, directly or through others", Excerpt(profile)));
    }
    auto text = [&](const char* key) { return profiles_.Text(profile, key); };
    std::string role = text("role_arn");
    if (!role.empty() && !text("web_identity_token_file").empty()) {
      CredentialPlan plan{.source = Source::kWebIdentity, .origin = "profile " + profile};
      plan.web_role = RoleOf(profile);
      plan.token_file = text("web_identity_token_file");
      return plan;
    }
    if (!role.empty()) return Assume(profile);
    if (std::optional<CredentialPlan> keys =
            Keys(profiles_.InCredentials(profile), profile, profiles_.credentials_path))
      return keys;
    if (std::string command = text("credential_process"); !command.empty()) {
      return CredentialPlan{.source = Source::kProcess, .origin = "profile " + profile, .command = command};
    }
    if (std::optional<CredentialPlan> keys =
            Keys(profiles_.InConfig(profile), profile, profiles_.config_path))
      return keys;
    if (!text("sso_session").empty() || !text("sso_account_id").empty()) {
      throw Refusal(
          fmt::format("profile {} gets its credentials by SSO, which is not supported: use a role, or keys",
                      Excerpt(profile)));
    }
    return std::nullopt;
  }

  static std::optional<CredentialPlan> Keys(const IniSection* section, const std::string& profile,
                                            const std::string& path) {
    if (section == nullptr || IniText(*section, "aws_access_key_id").empty()) return std::nullopt;
    CredentialPlan plan{.source = Source::kKeys, .origin = fmt::format("profile {} in {}", profile, path)};
    plan.keys.key_id = IniText(*section, "aws_access_key_id");
    plan.keys.secret = IniText(*section, "aws_secret_access_key");
    plan.keys.session_token = IniText(*section, "aws_session_token");
    if (plan.keys.secret.empty()) throw Refusal(plan.origin + " has no aws_secret_access_key");
    return plan;
  }

  Role RoleOf(const std::string& profile) const {
    Role role{.arn = profiles_.Text(profile, "role_arn"),
              .session_name = profiles_.Text(profile, "role_session_name"),
              .external_id = profiles_.Text(profile, "external_id")};
    std::string seconds = profiles_.Text(profile, "duration_seconds");
    std::from_chars(seconds.data(), seconds.data() + seconds.size(), role.seconds);
    role.seconds = std::clamp(role.seconds, 900, 43'200);
    return role;
  }

  CredentialPlan Assume(const std::string& profile) {
    if (!profiles_.Text(profile, "mfa_serial").empty()) {
      throw Refusal(
          fmt::format("profile {} wants a code of an MFA device (mfa_serial), which a daemon cannot give",
                      Excerpt(profile)));
    }
    std::string source = profiles_.Text(profile, "source_profile");
    CredentialPlan plan = source.empty() ? FromSource(profile) : FromSourceProfile(profile, source);
    plan.roles.push_back(RoleOf(profile));
    return plan;
  }

  CredentialPlan FromSourceProfile(const std::string& profile, const std::string& source) {
    // A profile with keys of its own may assume its own role.
    if (source == profile) {
      if (auto keys = Keys(profiles_.InCredentials(profile), profile, profiles_.credentials_path))
        return *keys;
    }
    std::optional<CredentialPlan> plan = FromProfile(source);
    if (plan) return *plan;
    throw Refusal(fmt::format("the source_profile {} of profile {} has no credentials in {} or {}",
                              Excerpt(source), Excerpt(profile), profiles_.config_path,
                              profiles_.credentials_path));
  }

  CredentialPlan FromSource(const std::string& profile) const {
    std::string source = profiles_.Text(profile, "credential_source");
    if (source == "Environment") return FromEnvironment();
    if (source == "Ec2InstanceMetadata") return FromMetadata();
    if (source == "EcsContainer") return FromContainer();
    throw Refusal(
        fmt::format("profile {} has role_arn and needs source_profile, or credential_source: Environment, "
                    "Ec2InstanceMetadata or EcsContainer",
                    Excerpt(profile)));
  }

  CredentialPlan FromWebIdentity() const {
    CredentialPlan plan{.source = Source::kWebIdentity, .origin = "AWS_WEB_IDENTITY_TOKEN_FILE"};
    plan.web_role = {.arn = Variable("AWS_ROLE_ARN"), .session_name = Variable("AWS_ROLE_SESSION_NAME")};
    plan.token_file = Variable("AWS_WEB_IDENTITY_TOKEN_FILE");
    return plan;
  }

  CredentialPlan FromSurroundings() const {
    bool has_container =
        Has("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") || Has("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    return has_container ? FromContainer() : FromMetadata();
  }

  CredentialPlan FromContainer() const {
    CredentialPlan plan{.source = Source::kContainer, .origin = "the container's credentials"};
    std::string relative = Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    plan.url = relative.empty() ? Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") : kContainerHost + relative;
    if (!MayGiveCredentials(plan.url)) {
      throw Refusal("AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or a loopback or link-local host");
    }
    plan.header = Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    plan.header_file = Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    return plan;
  }

  CredentialPlan FromMetadata() const {
    if (Lower(Variable("AWS_EC2_METADATA_DISABLED")) == "true") {
      throw Refusal(
          fmt::format("there are no AWS credentials: not in the environment, not in {} or {}, not of a "
                      "container, and AWS_EC2_METADATA_DISABLED is set",
                      profiles_.credentials_path, profiles_.config_path));
    }
    CredentialPlan plan{.source = Source::kInstanceMetadata, .origin = "the instance's metadata"};
    plan.url = Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    bool is_ipv6 = Lower(Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")) == "ipv6";
    if (plan.url.empty()) plan.url = is_ipv6 ? kMetadataHost6 : kMetadataHost;
    while (plan.url.ends_with('/')) plan.url.pop_back();
    return plan;
  }

  const Profiles& profiles_;
  const Variables& variables_;
  std::set<std::string> seen_;
};

}  // namespace

CredentialPlan PlanCredentials(const Profiles& profiles, const Variables& variables,
                               const std::string& profile, bool is_named) {
  return Planner(profiles, variables).Plan(profile, is_named);
}

}  // namespace nodepool::drivers::aws
