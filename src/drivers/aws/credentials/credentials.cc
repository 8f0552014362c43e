#include "drivers/aws/credentials/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>
#include <cstring>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "net/http/curl.h"

namespace nodepool::drivers::aws {

namespace {

// The name in the brackets, with single blanks; empty: the line has none.
std::string SectionName(std::string_view line) {
  std::size_t end = line.find(']');
  if (end == std::string_view::npos) return "";
  std::string name;
  for (const std::string& word : Split(Trim(line.substr(1, end - 1)), ' ')) {
    if (!word.empty()) name += (name.empty() ? "" : " ") + word;
  }
  return name;
}

bool IsComment(std::string_view line) { return line.starts_with('#') || line.starts_with(';'); }

class IniParser {
 public:
  IniFile Parse(std::string_view text) {
    while (!text.empty()) {
      std::size_t end = text.find('\n');
      ++number_;
      AddLine(text.substr(0, end));
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
    return std::move(file_);
  }

 private:
  [[noreturn]] void Refuse(std::string_view why) const {
    throw Error(Verdict::kInvalid, fmt::format("line {}: {}", number_, why));
  }

  void AddLine(std::string_view line) {
    std::string_view content = Trim(line);
    if (content.empty() || IsComment(content)) return;
    if (content.starts_with('[')) return BeginSection(content);
    bool is_indented = line.front() == ' ' || line.front() == '\t';
    std::size_t equals = content.find('=');
    if (is_indented && last_ != nullptr) return AddToBlock(content, equals);
    if (section_ == nullptr) Refuse("a setting before the first section");
    if (equals == std::string_view::npos) Refuse("neither a section nor a setting");
    last_ = &(*section_)[Lower(Trim(content.substr(0, equals)))];
    *last_ = {std::string(Trim(content.substr(equals + 1))), {}};
  }

  void BeginSection(std::string_view content) {
    std::string name = SectionName(content);
    if (name.empty()) Refuse("a section without a name");
    section_ = &file_[name];
    last_ = nullptr;
  }

  // Of a setting with a text it is the text's next line.
  void AddToBlock(std::string_view content, std::size_t equals) {
    if (!last_->text.empty() || equals == std::string_view::npos) return;
    std::string key = Lower(Trim(content.substr(0, equals)));
    last_->block[std::move(key)] = std::string(Trim(content.substr(equals + 1)));
  }

  IniFile file_;
  IniSection* section_ = nullptr;
  IniSetting* last_ = nullptr;
  int number_ = 0;
};

}  // namespace

IniFile ParseIni(std::string_view text) { return IniParser().Parse(text); }

std::string IniText(const IniSection& section, const std::string& key) {
  auto found = section.find(key);
  return found == section.end() ? "" : found->second.text;
}

namespace {

constexpr std::size_t kMaxFile = 1 << 20;

std::string PathOf(const Variables& variables, const char* variable, const char* file) {
  std::string path = VariableIn(variables, variable);
  std::string home = VariableIn(variables, "HOME");
  if (path.empty()) path = std::string("~/.aws/") + file;
  return path.starts_with("~/") ? home + path.substr(1) : path;
}

IniFile ReadIniFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    throw Error(Verdict::kInvalid, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  }
  std::string text(kMaxFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFile) throw Error(Verdict::kInvalid, path + " is larger than 1 MiB");
  try {
    return ParseIni(text);
  } catch (const Error& error) {
    throw error.In(path);
  }
}

const IniSection* FindSection(const IniFile& file, const std::string& name) {
  auto found = file.find(name);
  return found == file.end() ? nullptr : &found->second;
}

}  // namespace

std::string VariableIn(const Variables& variables, const std::string& name) {
  auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

const IniSection* Profiles::InConfig(const std::string& profile) const {
  for (const char* form : {"profile {}", "profile \"{}\"", "profile '{}'"}) {
    const IniSection* section = FindSection(config, fmt::format(fmt::runtime(form), profile));
    if (section != nullptr) return section;
  }
  return profile == "default" ? FindSection(config, profile) : nullptr;
}

const IniSection* Profiles::InCredentials(const std::string& profile) const {
  return FindSection(credentials, profile);
}

std::string Profiles::Text(const std::string& profile, const std::string& key) const {
  for (const IniSection* section : {InConfig(profile), InCredentials(profile)}) {
    std::string text = section == nullptr ? "" : IniText(*section, key);
    if (!text.empty()) return text;
  }
  return "";
}

Profiles ReadProfiles(const Variables& variables) {
  Profiles profiles;
  profiles.config_path = PathOf(variables, "AWS_CONFIG_FILE", "config");
  profiles.credentials_path = PathOf(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  profiles.config = ReadIniFile(profiles.config_path);
  profiles.credentials = ReadIniFile(profiles.credentials_path);
  return profiles;
}

std::string ChooseProfile(const Profiles& profiles, const Variables& variables,
                          const std::optional<std::string>& configured) {
  std::string name = configured.value_or("");
  for (const char* variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    if (name.empty()) name = VariableIn(variables, variable);
  }
  if (name.empty()) return "default";
  bool is_known = profiles.InConfig(name) != nullptr || profiles.InCredentials(name) != nullptr;
  if (is_known || (name == "default" && !configured)) return name;
  throw Error(Verdict::kInvalid, fmt::format("there is no AWS profile {} in {} or {}", Excerpt(name),
                                             profiles.config_path, profiles.credentials_path));
}

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
