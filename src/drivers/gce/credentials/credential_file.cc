#include "drivers/gce/credentials/credential_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/error.h"
#include "base/find_or_empty.h"
#include "base/json_fields.h"
#include "base/rsa_key.h"
#include "base/small_file.h"
#include "base/text.h"

namespace nodepool::drivers::gce {

namespace json = boost::json;

namespace {

constexpr const char* kTokenUrl = "https://oauth2.googleapis.com/token";

std::string Needed(const json::object& object, const char* key) {
  std::string text = TextIn(object, key);
  if (text.empty()) throw Error(Verdict::kInvalid, fmt::format("it has no {}", key));
  return text;
}

std::string UrlOrUsual(const json::object& object, const char* key, const char* otherwise) {
  std::string url = TextIn(object, key);
  if (url.empty()) url = otherwise;
  if (url.empty() || url.starts_with("http://") || url.starts_with("https://")) return url;
  throw Error(Verdict::kInvalid, fmt::format("its {} is no URL with http or https", key));
}

ExternalAccount ReadExternal(const json::object& file) {
  ExternalAccount account;
  account.audience = Needed(file, "audience");
  account.subject_token_type = Needed(file, "subject_token_type");
  account.token_url = UrlOrUsual(file, "token_url", "https://sts.googleapis.com/v1/token");
  account.impersonation_url = UrlOrUsual(file, "service_account_impersonation_url", "");
  const json::object* source = ObjectIn(file, "credential_source");
  if (source == nullptr) throw Error(Verdict::kInvalid, "it has no credential_source");
  account.file = TextIn(*source, "file");
  account.url = UrlOrUsual(*source, "url", "");
  if (account.file.empty() && account.url.empty()) {
    throw Error(Verdict::kInvalid, "its credential_source is neither file nor url; others are not supported");
  }
  if (!TextIn(*source, "environment_id").empty()) {
    throw Error(Verdict::kInvalid,
                "its credential_source is of AWS, which is not supported: use file or url");
  }
  if (const json::object* headers = ObjectIn(*source, "headers")) {
    for (const auto& [name, value] : *headers) account.headers.emplace_back(name, TextIn(*headers, name));
  }
  const json::object* format = ObjectIn(*source, "format");
  if (format != nullptr && TextIn(*format, "type") == "json")
    account.field = Needed(*format, "subject_token_field_name");
  return account;
}

CredentialSettings ReadObject(const json::object& file) {
  CredentialSettings settings;
  std::string type = Needed(file, "type");
  if (type == "service_account") {
    settings.key = {Needed(file, "client_email"), TextIn(file, "private_key_id"), Needed(file, "private_key"),
                    UrlOrUsual(file, "token_uri", kTokenUrl)};
  } else if (type == "authorized_user") {
    settings.user = {Needed(file, "client_id"), Needed(file, "client_secret"), Needed(file, "refresh_token"),
                     UrlOrUsual(file, "token_uri", kTokenUrl)};
  } else if (type == "external_account") {
    settings.external = ReadExternal(file);
  } else {
    throw Error(Verdict::kInvalid,
                fmt::format("its type is {}; service_account, authorized_user and external_account are known",
                            Excerpt(type)));
  }
  return settings;
}

}  // namespace

std::string CredentialPath(const std::optional<std::string>& configured, const Variables& variables) {
  if (configured && !configured->empty()) return *configured;
  std::string path = FindOrEmpty(variables, "GOOGLE_APPLICATION_CREDENTIALS");
  if (!path.empty()) return path;
  std::string folder = FindOrEmpty(variables, "CLOUDSDK_CONFIG");
  if (folder.empty()) folder = FindOrEmpty(variables, "HOME") + "/.config/gcloud";
  path = folder + "/application_default_credentials.json";
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 ? path : "";
}

CredentialSettings ReadCredentials(const std::string& path) {
  boost::system::error_code error;
  json::value value = json::parse(ReadTextFile(path), error);
  if (error || !value.is_object()) throw Error(Verdict::kInvalid, path + ": it is no JSON object");
  try {
    CredentialSettings settings = ReadObject(value.get_object());
    settings.origin = path;
    return settings;
  } catch (const Error& fault) {
    throw fault.In("the credentials file " + path);
  }
}

std::string SignAssertion(const ServiceAccountKey& key, WallTime now) {
  Expected<RsaKey> parsed = RsaKey::Parse(key.key_pem);
  if (!parsed) throw parsed.error().In("the private_key of the credentials file");
  std::int64_t issued = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  json::object claims{
      {"iss", key.email}, {"scope", kScope}, {"aud", key.token_url}, {"iat", issued}, {"exp", issued + 3600}};
  return SignedToken(*parsed, json::serialize(claims), key.key_id);
}

}  // namespace nodepool::drivers::gce
