#include "drivers/kubernetes/kubeconfig/kubeconfig.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/small_file.h"
#include "base/text.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

namespace {

// The API server of the cluster that we run in, and our pod's account on it (driver-kubernetes.md 3.4).
// Error(kInvalid): we do not run in a pod, or it has no account.
Connection ReadPodAccount(const Places& places) {
  auto variable = [&places](const char* name) {
    auto found = places.environment.find(name);
    return found == places.environment.end() ? std::string() : found->second;
  };
  std::string host = variable("KUBERNETES_SERVICE_HOST");
  std::string port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    throw Error(
        Verdict::kInvalid,
        "there is no kubeconfig: KUBECONFIG names no file that exists, nor is there ~/.kube/config; and "
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, which a pod has, are not set");
  }
  Connection connection;
  bool is_ipv6 = host.find(':') != std::string::npos;
  connection.server = fmt::format("https://{}:{}", is_ipv6 ? "[" + host + "]" : host, port);
  std::string authority = places.pod_account + "/ca.crt";
  connection.ca_pem = ReadSmallFile(authority);
  connection.user.token_file = places.pod_account + "/token";
  connection.files = {authority, connection.user.token_file};
  return connection;
}

constexpr std::string_view kKinds[] = {"clusters", "contexts", "users"};

// The files that exist.
std::vector<std::string> FilesOf(const process::Environment& environment) {
  auto variable = environment.find("KUBECONFIG");
  std::vector<std::string> paths = {"~/.kube/config"};
  if (variable != environment.end()) paths = Split(variable->second, ':');
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    std::string place = WithHome(path, environment);
    if (std::filesystem::exists(place)) found.push_back(std::filesystem::absolute(place).string());
  }
  return found;
}

// Several files as one: of each name the first entry counts, and of other settings those of the first file.
class MergedFiles {
 public:
  explicit MergedFiles(std::vector<std::string> paths) {
    for (std::string& path : paths) Add(std::move(path));
  }

  const std::string& current_context() const { return current_context_; }

  // The member `member` of the entry, e.g. "cluster" of one of "clusters"; null: there is none.
  const ConfigEntry* Find(std::string_view kind, const std::string& name) const {
    auto found = entries_.find({std::string(kind), name});
    return found == entries_.end() ? nullptr : &found->second;
  }

 private:
  void Add(std::string path) {
    auto content = config::ReadYamlFile(path, [](std::string_view) { return std::nullopt; });
    if (!content) throw Error(Verdict::kInvalid, content.error().message());
    if (content->kind() != config::Value::Kind::kMap)
      throw Error(Verdict::kInvalid, path + " is not a kubeconfig: it is empty, or not a mapping");
    if (const config::Value* current = content->Find("current-context");
        is_first_ && current != nullptr && current->is_scalar()) {
      current_context_ = current->text();
    }
    is_first_ = false;
    for (std::string_view kind : kKinds) AddEntries(*content, kind, path);
  }

  void AddEntries(const config::Value& content, std::string_view kind, const std::string& path) {
    const config::Value* list = content.Find(kind);
    if (list == nullptr || list->kind() != config::Value::Kind::kList) return;
    std::string member(kind.substr(0, kind.size() - 1));
    for (const config::Value& entry : list->list()) {
      const config::Value* name = entry.Find("name");
      const config::Value* value = entry.Find(member);
      if (name == nullptr || !name->is_scalar()) continue;
      entries_.emplace(std::pair(std::string(kind), name->text()),
                       ConfigEntry(path, value == nullptr ? config::Value() : *value));
    }
  }

  bool is_first_ = true;
  std::string current_context_;
  std::map<std::pair<std::string, std::string>, ConfigEntry> entries_;
};

void ReadCluster(const ConfigEntry& entry, Connection& connection) {
  connection.server = entry.Text("server");
  while (connection.server.ends_with('/')) connection.server.pop_back();
  if (connection.server.empty()) throw Error(Verdict::kInvalid, entry.path() + ": a cluster has no server");
  connection.verifies_tls = !entry.Truth("insecure-skip-tls-verify");
  connection.ca_pem = entry.PemOrFile("certificate-authority", connection.files);
  connection.server_name = entry.Text("tls-server-name");
  connection.proxy = entry.Text("proxy-url");
}

}  // namespace

Connection ReadConnection(const Places& places, const std::optional<std::string>& context) {
  std::vector<std::string> paths = FilesOf(places.environment);
  if (paths.empty()) return ReadPodAccount(places);
  Connection connection;
  connection.files = paths;
  MergedFiles files(paths);
  std::string where = Join(paths, ", ");
  std::string name = context.value_or(files.current_context());
  if (name.empty()) {
    throw Error(Verdict::kInvalid,
                where + " has no current-context; set it there, or context in the provider's section");
  }
  const ConfigEntry* entry = files.Find("contexts", name);
  if (entry == nullptr)
    throw Error(Verdict::kInvalid, fmt::format("there is no context {} in {}", Excerpt(name), where));
  std::string cluster_name = entry->Text("cluster");
  const ConfigEntry* cluster = files.Find("clusters", cluster_name);
  if (cluster == nullptr) {
    throw Error(Verdict::kInvalid, fmt::format("there is no cluster {}, which context {} names, in {}",
                                               Excerpt(cluster_name), Excerpt(name), where));
  }
  ReadCluster(*cluster, connection);
  const ConfigEntry* user = files.Find("users", entry->Text("user"));
  if (user != nullptr) connection.user = ReadUser(*user, connection.files);
  return connection;
}

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

namespace {

constexpr Duration kLimit = std::chrono::seconds(60);
constexpr Duration kGrace = std::chrono::seconds(2);

// The runner knows no directory, and returns errors with the output: a shell sets both; the plugin's words
// pass it unread.
std::vector<std::string> InFolder(const ExecPlugin& plugin) {
  std::vector<std::string> argv = {"/bin/sh", "-c", "cd \"$1\" && shift && exec \"$@\" 2>/dev/null", "sh",
                                   plugin.folder};
  argv.insert(argv.end(), plugin.argv.begin(), plugin.argv.end());
  return argv;
}

[[noreturn]] void RefuseOutput(const ExecPlugin& plugin, std::string_view why) {
  throw Error(Verdict::kRetry, fmt::format("the credential plugin {} {}", Excerpt(plugin.argv.front()), why));
}

}  // namespace

std::string PluginInput(const ExecPlugin& plugin, const Connection& connection) {
  json::object spec = {{"interactive", false}};
  if (plugin.wants_cluster) {
    json::object cluster = {{"server", connection.server}};
    if (!connection.ca_pem.empty()) cluster["certificate-authority-data"] = Base64(connection.ca_pem);
    if (!connection.verifies_tls) cluster["insecure-skip-tls-verify"] = true;
    if (!connection.server_name.empty()) cluster["tls-server-name"] = connection.server_name;
    if (!connection.proxy.empty()) cluster["proxy-url"] = connection.proxy;
    spec["cluster"] = std::move(cluster);
  }
  return json::serialize(json::object{
      {"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}});
}

PluginCredential ReadPluginOutput(const ExecPlugin& plugin, const std::string& output) {
  boost::system::error_code error;
  json::value parsed = json::parse(output, error);
  if (error || !parsed.is_object()) RefuseOutput(plugin, "has printed something that is no JSON object");
  const json::object& answer = parsed.as_object();
  if (TextIn(answer, "apiVersion") != plugin.api_version) {
    RefuseOutput(plugin, fmt::format("speaks version {} in place of {}",
                                     Excerpt(TextIn(answer, "apiVersion")), Excerpt(plugin.api_version)));
  }
  const json::object* status = ObjectIn(answer, "status");
  if (status == nullptr) RefuseOutput(plugin, "has printed no credential");
  PluginCredential credential;
  credential.token = TextIn(*status, "token");
  credential.certificate_pem = TextIn(*status, "clientCertificateData");
  credential.key_pem = TextIn(*status, "clientKeyData");
  bool has_certificate = !credential.certificate_pem.empty() && !credential.key_pem.empty();
  if (credential.token.empty() && !has_certificate) RefuseOutput(plugin, "has printed no credential");
  credential.expires = ParseIso8601(TextIn(*status, "expirationTimestamp"));
  return credential;
}

Task<PluginCredential> RunPlugin(process::Runner& runner, ExecPlugin plugin, const Connection& connection,
                                 process::Environment environment) {
  process::Command command;
  command.argv = InFolder(plugin);
  command.environment = std::move(environment);
  for (const auto& [name, value] : plugin.environment) command.environment[name] = value;
  command.environment["KUBERNETES_EXEC_INFO"] = PluginInput(plugin, connection);
  command.timeout = kLimit;
  command.grace = kGrace;
  process::Exit exit = co_await runner.Run(std::move(command));
  if (exit.is_timed_out) RefuseOutput(plugin, "did not end within 60 s");
  if (exit.code != 0) RefuseOutput(plugin, fmt::format("has failed with exit status {}", exit.code));
  PluginCredential credential = ReadPluginOutput(plugin, exit.output);
  co_return credential;
}

}  // namespace nodepool::drivers::kubernetes
