#pragma once

#include <memory>
#include <set>
#include <string>

#include "driver/cloud/testing/provider_fixture.h"
#include "driver/driver.h"
#include "drivers/kubernetes/kubernetes_driver.h"
#include "drivers/kubernetes/testing/kubernetes_imposter.h"

namespace nodepool::drivers::kubernetes {

// A runner without programs.
class NoRunner : public process::Runner {
 public:
  Task<process::Exit> Run(process::Command) override { throw Error(Verdict::kInvalid, "no programs here"); }
};

inline Connection ImposterConnection() {
  Connection connection;
  connection.server = "https://cluster";
  connection.ca_pem = "authority";
  connection.user.token = "own token";
  return connection;
}

// The means to reach an imposter; `connection` is read when credentials are needed.
inline Means MeansFor(Loop& loop, nodepool::testing::KubernetesImposter& imposter,
                      const Connection& connection) {
  Means means;
  means.http = std::make_unique<nodepool::testing::KubernetesImposterClient>(loop, imposter);
  means.runner = std::make_unique<NoRunner>();
  auto read = [](const Connection& found) -> Task<FilesRead> {
    FilesRead files{found, ""};
    co_return files;
  };
  means.read_files = [&connection, read] { return read(connection); };
  return means;
}

// A provider of one of the three drivers with an imposter, in virtual time.
class KubernetesTest : public driver::cloud::CloudFixture<KubernetesConfig, KubernetesLabel,
                                                          driver::PoolConfig, KubernetesAdapter> {
 protected:
  KubernetesTest() : CloudFixture("cluster", "kubernetes", "pod-small") {
    config->context = "ci";
    config->launch_timeout = std::chrono::seconds(300);
    label->image = "debian:12";
    label->host_key_checking = false;
    label->connection.connection_type = "kubectl";
    label->need = {{"instances", 1}, {"cores", 0}, {"ram", 0}};
  }

  void Start(Kind kind = Kind::kKubernetes) {
    config->kind = kind;
    StartProvider([this](const driver::cloud::AdapterEnvironment& environment) {
      return std::make_unique<KubernetesAdapter>(environment, config,
                                                 MeansFor(time.loop(), imposter, connection));
    });
    imposter.ClearCalls();
  }

  // The message of a launch that is to fail; the rest is in the members below.
  std::string LaunchFails() {
    Failure failure = FailureOfLaunch();
    last_verdict = failure.verdict();
    last_refused.clear();
    try {
      failure.Rethrow();
    } catch (const driver::Refusal& refusal) {
      last_refused = refusal.resources();
    } catch (const std::exception&) {
    }
    return failure.message();
  }
  boost::json::object Port() const { return last.connection_port.value().as_object(); }
  std::string Namespace() const { return Port().at("namespace").as_string().c_str(); }

  nodepool::testing::KubernetesImposter imposter{time.loop()};
  Connection connection = ImposterConnection();
  Verdict last_verdict = Verdict::kFail;
  std::set<std::string> last_refused;  // the resources that a refusal names
};

}  // namespace nodepool::drivers::kubernetes
