#include "drivers/kubernetes/kubeconfig/entry.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/encoding.h"
#include "base/error.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/time_text.h"

namespace nodepool::drivers::kubernetes {

namespace {

// When the first certificate of a PEM text ends. Error(kInvalid) names `place`: it is no certificate, or it
// has ended at `now`.
WallTime EndOfCertificate(const std::string& pem, const std::string& place, WallTime now) {
  std::unique_ptr<BIO, decltype(&BIO_free)> source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                   BIO_free);
  std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr), X509_free);
  std::tm fields{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &fields) != 1) {
    throw Error(Verdict::kInvalid,
                place + " is not a client certificate in PEM format; correct or replace it");
  }
  WallTime end = FromSeconds(static_cast<double>(timegm(&fields)));
  if (end <= now) {
    throw Error(
        Verdict::kInvalid,
        fmt::format("the client certificate in {} ended at {}; replace it there by a new one, which is used "
                    "without a restart",
                    place, Iso8601(end)));
  }
  return end;
}

}  // namespace

std::string WithHome(const std::string& path, const process::Environment& environment) {
  auto home = environment.find("HOME");
  bool is_at_home = path == "~" || path.starts_with("~/");
  return is_at_home && home != environment.end() ? home->second + path.substr(1) : path;
}

std::string ConfigEntry::folder() const { return std::filesystem::path(path_).parent_path().string(); }

ConfigEntry ConfigEntry::Sub(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return ConfigEntry(path_, found == nullptr ? config::Value() : *found);
}

bool ConfigEntry::Has(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return found != nullptr && !found->is_null();
}

std::string ConfigEntry::Text(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return found != nullptr && found->is_scalar() ? found->text() : "";
}

bool ConfigEntry::Truth(std::string_view key) const {
  const config::Value* found = value_.Find(key);
  return found != nullptr && found->kind() == config::Value::Kind::kBool && found->bool_value();
}

std::vector<std::string> ConfigEntry::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  const config::Value* found = value_.Find(key);
  if (found == nullptr || found->kind() != config::Value::Kind::kList) return texts;
  for (const config::Value& item : found->list()) {
    if (item.is_scalar()) texts.push_back(item.text());
  }
  return texts;
}

std::string ConfigEntry::Path(std::string_view key) const {
  std::string text = Text(key);
  return text.empty() ? "" : (std::filesystem::path(folder()) / text).lexically_normal().string();
}

std::string ConfigEntry::PemOrFile(const std::string& key, std::vector<std::string>& files) const {
  if (std::string data = Text(key + "-data"); !data.empty()) {
    std::optional<std::string> bytes = FromBase64(data);
    if (!bytes) throw Error(Verdict::kInvalid, fmt::format("{}: {}-data is not base64", path_, key));
    return *bytes;
  }
  std::string place = Path(key);
  if (place.empty()) return "";
  files.push_back(place);
  return ReadSmallFile(place);
}

namespace {

// The token that an authentication provider left in the file, of the kinds that Kubernetes had until 1.26.
std::string TokenOfProvider(const ConfigEntry& provider) {
  std::string name = provider.Text("name");
  ConfigEntry config = provider.Sub("config");
  std::string token = config.Text(name == "oidc" ? "id-token" : "access-token");
  std::optional<WallTime> expiry = ParseIso8601(config.Text("expiry"));
  bool is_over = expiry && *expiry <= std::chrono::system_clock::now();
  if (token.empty() || is_over) {
    throw Error(Verdict::kInvalid,
                fmt::format("{}: auth-provider {} has no token that is valid, and is not asked for one; "
                            "use an exec plugin",
                            provider.path(), Excerpt(name)));
  }
  return token;
}

ExecPlugin ReadExec(const ConfigEntry& entry) {
  ExecPlugin plugin;
  plugin.api_version = entry.Text("apiVersion");
  plugin.folder = entry.folder();
  plugin.wants_cluster = entry.Truth("provideClusterInfo");
  std::string command = entry.Text("command");
  if (command.empty()) throw Error(Verdict::kInvalid, entry.path() + ": exec has no command");
  plugin.argv = {command};
  for (std::string& word : entry.Texts("args")) plugin.argv.push_back(std::move(word));
  const config::Value* variables = entry.value().Find("env");
  if (variables == nullptr || variables->kind() != config::Value::Kind::kList) return plugin;
  for (const config::Value& variable : variables->list()) {
    ConfigEntry pair(entry.path(), variable);
    if (!pair.Text("name").empty()) plugin.environment[pair.Text("name")] = pair.Text("value");
  }
  return plugin;
}

net::HttpHeaders Impersonation(const ConfigEntry& entry) {
  net::HttpHeaders headers;
  if (std::string user = entry.Text("as"); !user.empty()) headers.emplace_back("Impersonate-User", user);
  if (std::string uid = entry.Text("as-uid"); !uid.empty()) headers.emplace_back("Impersonate-Uid", uid);
  for (const std::string& group : entry.Texts("as-groups")) headers.emplace_back("Impersonate-Group", group);
  return headers;
}

}  // namespace

User ReadUser(const ConfigEntry& entry, std::vector<std::string>& files) {
  User user;
  user.certificate_pem = entry.PemOrFile("client-certificate", files);
  if (!user.certificate_pem.empty()) {
    bool is_file = entry.Text("client-certificate-data").empty();
    std::string place =
        is_file ? entry.Path("client-certificate") : entry.path() + ", client-certificate-data";
    user.certificate_ends = EndOfCertificate(user.certificate_pem, place, std::chrono::system_clock::now());
  }
  user.key_pem = entry.PemOrFile("client-key", files);
  user.impersonation = Impersonation(entry);
  if (entry.Has("auth-provider")) {
    user.token = TokenOfProvider(entry.Sub("auth-provider"));
  } else if (!entry.Text("token").empty()) {
    user.token = entry.Text("token");
  } else if (std::string path = entry.Path("tokenFile"); !path.empty()) {
    user.token_file = path;
    files.push_back(path);
  } else if (entry.Has("exec")) {
    user.exec = ReadExec(entry.Sub("exec"));
  } else {
    user.username = entry.Text("username");
    user.password = entry.Text("password");
  }
  return user;
}

}  // namespace nodepool::drivers::kubernetes
