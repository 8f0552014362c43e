#include "drivers/kubernetes/kubeconfig/exec_plugin.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/encoding.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/time_text.h"

namespace nodepool::drivers::kubernetes {

namespace json = boost::json;

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
