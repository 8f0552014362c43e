#include "drivers/openstack/config/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "drivers/openstack/config/cloud_overlay.h"

namespace nodepool::drivers::openstack {

namespace json = boost::json;

namespace {

constexpr std::array kAuthOptions = {"auth_url",
                                     "username",
                                     "user_id",
                                     "user_name",
                                     "password",
                                     "token",
                                     "project_id",
                                     "project_name",
                                     "tenant_id",
                                     "tenant_name",
                                     "user_domain_id",
                                     "user_domain_name",
                                     "project_domain_id",
                                     "project_domain_name",
                                     "domain_id",
                                     "domain_name",
                                     "default_domain_id",
                                     "default_domain_name",
                                     "trust_id",
                                     "system_scope",
                                     "endpoint",
                                     "application_credential_id",
                                     "application_credential_name",
                                     "application_credential_secret"};

void FillMissing(json::object& auth, const char* key, const json::value& value) {
  json::value* present = auth.if_contains(key);
  if (present == nullptr || present->is_null()) auth[key] = value;
}

void Rename(json::object& auth, const char* old_name, const char* new_name) {
  const json::value* value = auth.if_contains(old_name);
  if (value == nullptr) return;
  json::value copy = *value;
  auth.erase(old_name);
  FillMissing(auth, new_name, copy);
}

// A domain given once is the user's and the project's, when a project is the
// scope.
void SpreadDomain(json::object& auth) {
  bool has_project =
      !TextOf(auth.if_contains("project_id")).empty() || !TextOf(auth.if_contains("project_name")).empty();
  auto spread = [&auth](const char* from, const char* user, const char* project) {
    const json::value* value = auth.if_contains(from);
    if (value == nullptr || value->is_null()) return;
    json::value copy = *value;
    FillMissing(auth, user, copy);
    FillMissing(auth, project, copy);
  };
  spread("default_domain_id", "user_domain_id", "project_domain_id");
  spread("default_domain_name", "user_domain_name", "project_domain_name");
  if (!has_project) return;
  spread("domain_id", "user_domain_id", "project_domain_id");
  spread("domain_name", "user_domain_name", "project_domain_name");
  auth.erase("domain_id");
  auth.erase("domain_name");
}

json::object Domain(const Credentials& credentials, const std::string& prefix) {
  if (const std::string& id = credentials.Get(prefix + "_id"); !id.empty()) return {{"id", id}};
  if (const std::string& name = credentials.Get(prefix + "_name"); !name.empty()) return {{"name", name}};
  return {};
}

json::object User(const Credentials& credentials) {
  if (const std::string& id = credentials.Get("user_id"); !id.empty()) return {{"id", id}};
  json::object user{{"name", credentials.Get("username")}};
  json::object domain = Domain(credentials, "user_domain");
  if (!domain.empty()) user["domain"] = std::move(domain);
  return user;
}

json::object Identity(const Credentials& credentials) {
  if (credentials.type == "token") {
    return {{"methods", json::array{"token"}}, {"token", {{"id", credentials.Get("token")}}}};
  }
  if (credentials.type == "v3applicationcredential") {
    json::object application{{"secret", credentials.Get("application_credential_secret")}};
    if (const std::string& id = credentials.Get("application_credential_id"); !id.empty()) {
      application["id"] = id;
    } else {
      application["name"] = credentials.Get("application_credential_name");
      application["user"] = User(credentials);
    }
    return {{"methods", json::array{"application_credential"}},
            {"application_credential", std::move(application)}};
  }
  json::object user = User(credentials);
  user["password"] = credentials.Get("password");
  return {{"methods", json::array{"password"}}, {"password", {{"user", std::move(user)}}}};
}

// Empty: the token's scope is the user's default, or fixed by the credential.
json::object Scope(const Credentials& credentials) {
  if (credentials.type == "v3applicationcredential") return {};
  if (json::object domain = Domain(credentials, "domain"); !domain.empty()) return {{"domain", domain}};
  if (const std::string& id = credentials.Get("project_id"); !id.empty()) {
    return {{"project", {{"id", id}}}};
  }
  if (const std::string& name = credentials.Get("project_name"); !name.empty()) {
    json::object project{{"name", name}};
    json::object domain = Domain(credentials, "project_domain");
    if (!domain.empty()) project["domain"] = std::move(domain);
    return {{"project", std::move(project)}};
  }
  if (const std::string& trust = credentials.Get("trust_id"); !trust.empty()) {
    return {{"OS-TRUST:trust", {{"id", trust}}}};
  }
  if (!credentials.Get("system_scope").empty()) return {{"system", {{"all", true}}}};
  return {};
}

void Require(const Credentials& credentials, const std::string& cloud,
             std::initializer_list<const char*> alternatives) {
  std::vector<std::string> names;
  for (const char* option : alternatives) {
    if (!credentials.Get(option).empty()) return;
    names.emplace_back(option);
  }
  throw Error(Verdict::kInvalid, fmt::format("cloud {}: auth needs {}", cloud, Join(names, " or ")));
}

void Check(const Credentials& credentials, const std::string& cloud, bool is_version_3) {
  if (credentials.type == "none") return Require(credentials, cloud, {"endpoint"});
  Require(credentials, cloud, {"auth_url"});
  if (credentials.type == "token") Require(credentials, cloud, {"token"});
  if (credentials.type == "password") {
    Require(credentials, cloud, {"username", "user_id"});
    Require(credentials, cloud, {"password"});
  }
  if (credentials.type == "v3applicationcredential") {
    Require(credentials, cloud, {"application_credential_secret"});
    Require(credentials, cloud, {"application_credential_id", "application_credential_name"});
  }
  bool needs_domain = is_version_3 && !credentials.Get("project_name").empty() &&
                      credentials.Get("project_id").empty() && credentials.type != "v3applicationcredential";
  if (needs_domain) Require(credentials, cloud, {"project_domain_name", "project_domain_id"});
}

}  // namespace

void GatherAuth(json::object& settings) {
  json::value* present = settings.if_contains("auth");
  json::object auth = present != nullptr && present->is_object() ? present->as_object() : json::object();
  for (const char* option : kAuthOptions) {
    const json::value* value = settings.if_contains(option);
    if (value == nullptr) continue;
    FillMissing(auth, option, *value);
    settings.erase(option);
  }
  Rename(auth, "tenant_id", "project_id");
  Rename(auth, "tenant_name", "project_name");
  Rename(auth, "user_name", "username");
  SpreadDomain(auth);
  settings["auth"] = std::move(auth);
}

Credentials ReadCredentials(const json::object& settings, const std::string& cloud) {
  std::string type = Lower(TextOf(settings.if_contains("auth_type")));
  if (type.empty()) type = "password";
  constexpr std::array kTypes = {"password", "v3password", "token", "v3token", "v3applicationcredential",
                                 "none"};
  if (std::ranges::find(kTypes, type) == kTypes.end()) {
    throw Error(Verdict::kInvalid,
                fmt::format("cloud {}: auth_type {} is not supported; these are: {}", cloud, Excerpt(type),
                            Join({kTypes.begin(), kTypes.end()}, ", ")));
  }
  bool is_version_3 = type.starts_with("v3");
  Credentials credentials;
  credentials.type = type == "v3password" || type == "v3token" ? type.substr(2) : type;
  for (const auto& [option, value] : settings.at("auth").as_object()) {
    credentials.options[std::string(option)] = TextOf(&value);
  }
  Check(credentials, cloud, is_version_3);
  return credentials;
}

json::object TokenRequest(const Credentials& credentials) {
  json::object auth{{"identity", Identity(credentials)}};
  json::object scope = Scope(credentials);
  if (!scope.empty()) auth["scope"] = std::move(scope);
  return {{"auth", std::move(auth)}};
}

}  // namespace nodepool::drivers::openstack
