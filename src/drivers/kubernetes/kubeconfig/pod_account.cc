#include "drivers/kubernetes/kubeconfig/pod_account.h"

#include <fmt/format.h>

#include "drivers/kubernetes/kubeconfig/files.h"

namespace nodepool::drivers::kubernetes {

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

}  // namespace nodepool::drivers::kubernetes
