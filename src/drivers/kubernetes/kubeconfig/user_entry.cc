#include "drivers/kubernetes/kubeconfig/user_entry.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/time_text.h"
#include "drivers/kubernetes/kubeconfig/certificate.h"

namespace nodepool::drivers::kubernetes {

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
