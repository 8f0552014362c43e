#include "drivers/kubernetes/kubeconfig/kubeconfig.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/small_file.h"
#include "base/text.h"
#include "config/yaml/yaml_reader.h"
#include "drivers/kubernetes/kubeconfig/entry.h"

namespace nodepool::drivers::kubernetes {

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

}  // namespace nodepool::drivers::kubernetes
