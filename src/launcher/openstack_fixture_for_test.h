#pragma once

#include <boost/json/parse.hpp>

#include "drivers/openstack/openstack_fixture_for_test.h"
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {

// Launchers of the OpenStack driver. Its cloud has flavors of 1 core and 2048 MiB and of 4 cores and
// 8192 MiB, and the image debian.
class OpenstackCloudTest : public LauncherFixture {
 protected:
  // A provider with a pool `main`; each text is added to its mapping in YAML.
  struct Provider {
    std::string name = "cloud";
    std::string settings;
    std::string pool = "labels: [{name: small, cloud-image: image, flavor-name: m1.small}]";
    std::string image = "image-name: debian";
    std::string more_pools;
  };

  void SetUp() override {
    LauncherFixture::SetUp();
    auto scan = [this](std::string, int, bool wants_keys, SteadyTime) { return Scan(wants_keys); };
    drivers_.Add(std::make_unique<drivers::ImposterDriver>(imposter_, scan));
  }

  void Add(Provider provider) {
    providers_ += "- {name: " + provider.name + ", driver: openstack, cloud: vendor, " +
                  "cloud-images: [{name: image, " + provider.image + "}], " + provider.settings +
                  (provider.settings.empty() ? "" : ", ") + "pools: [{name: main, auto-floating-ip: false, " +
                  provider.pool + "}" + provider.more_pools + "]}\n";
  }
  void Add() { Add(Provider()); }
  void Load() {
    LoadYaml(top_ + "\nlabels: [{name: small, " + small_ + "}, {name: large}, {name: other}]\nproviders:\n" +
             providers_);
  }
  Running& StartLauncher(std::string hostname = "np01") override {
    if (providers_.empty()) Add();
    Load();
    return LauncherFixture::StartLauncher(std::move(hostname));
  }
  // Puts a configuration with these providers in force.
  void Reconfigure(Running& running, std::vector<Provider> providers) {
    providers_.clear();
    for (Provider& provider : providers) Add(std::move(provider));
    Load();
    running.launcher->Reconfigure(config_);
    time_.Advance(std::chrono::seconds(1));
  }

  // What pools say of themselves.
  std::vector<Component> Pools() {
    std::vector<Component> pools;
    for (const std::string& name : Children("/nodepool/components/pool")) {
      auto data = time_.Run(client_->Get("/nodepool/components/pool/" + name));
      pools.push_back(*ParseComponent(ComponentKind::kPool, data->data));
    }
    return pools;
  }
  int Attempts() const { return imposter_.Count("POST", "/compute/v2.1/servers"); }
  int QuotaReads() const { return imposter_.Count("GET", "/compute/v2.1/limits"); }
  // A member of the last request for a server.
  boost::json::value Sent(const std::string& member) const {
    const auto* call = imposter_.LastCall("POST", "/compute/v2.1/servers");
    return boost::json::parse(call->body).at("server").at(member);
  }

  Task<std::vector<std::string>> Scan(bool wants_keys) {
    ++scans_;
    co_await time_.loop().SleepFor(std::chrono::seconds(1));
    if (failing_scans_ > 0 && failing_scans_-- > 0) throw Error(Verdict::kRetry, "no host keys");
    std::vector<std::string> keys;
    if (wants_keys) keys.push_back("ssh-ed25519 AAAA");
    co_return keys;
  }

  testing::OpenstackImposter imposter_{time_.loop(), "http://cloud.example"};
  std::string top_;  // top-level YAML
  std::string small_ = "min-ready: 0";
  int failing_scans_ = 0;
  int scans_ = 0;

 private:
  std::string providers_;
};

}  // namespace nodepool::launcher
