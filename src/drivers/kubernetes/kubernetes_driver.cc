#include "drivers/kubernetes/kubernetes_driver.h"

#include <fmt/format.h>

#include "base/version.h"
#include "drivers/kubernetes/config/kubernetes_schema.h"
#include "drivers/kubernetes/kubernetes_adapter.h"
#include "net/http/curl_client.h"
#include "process/system_runner.h"

namespace nodepool::drivers {

using kubernetes::Kind;

KubernetesDriver::KubernetesDriver(Kind kind, kubernetes::Places places)
    : kind_(kind), places_(std::move(places)) {}

std::string_view KubernetesDriver::name() const {
  switch (kind_) {
    case Kind::kOpenshift:
      return "openshift";
    case Kind::kOpenshiftPods:
      return "openshiftpods";
    case Kind::kKubernetes:
      break;
  }
  return "kubernetes";
}

const config::Schema& KubernetesDriver::ProviderSchema() const { return kubernetes::SchemaOf(kind_); }

std::shared_ptr<const driver::ProviderConfig> KubernetesDriver::LoadProviderConfig(
    const config::ProviderSection& section, config::Config& config) {
  auto loaded = kubernetes::LoadKubernetesConfig(kind_, section, config);
  try {
    kubernetes::ReadConnection(places_, loaded->context);
  } catch (const Error& lack) {
    std::string message = fmt::format("provider {}: {}", section.name, lack.message());
    config.warnings.push_back(config::ErrorAt(section.source.position(), message).In(config.path).message());
  }
  return loaded;
}

std::unique_ptr<driver::cloud::Adapter> KubernetesDriver::CreateAdapter(
    const driver::ProviderEnvironment& environment, std::shared_ptr<const driver::ProviderConfig> config) {
  auto own = std::dynamic_pointer_cast<const kubernetes::KubernetesConfig>(std::move(config));
  if (!own) throw Error(Verdict::kFail, "the provider's configuration was made by another driver");
  kubernetes::Means means;
  means.http = std::make_unique<net::CurlClient>(environment.loop, environment.blocking_pool,
                                                 "nodepool/" + std::string(Version()));
  means.runner = std::make_unique<process::SystemRunner>(environment.loop);
  means.environment = places_.environment;
  means.read_files = [&pool = environment.blocking_pool, places = places_, context = own->context] {
    return kubernetes::ReadFilesOf(pool, places, context);
  };
  return std::make_unique<kubernetes::KubernetesAdapter>(environment, std::move(own), std::move(means));
}

}  // namespace nodepool::drivers
