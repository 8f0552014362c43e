#pragma once

#include <fmt/format.h>

#include <map>
#include <string>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {

// A launcher, a builder, a provider with a pool, and an image that is uploaded to it. The time is
// 1,700,000,000.
class StatusTest : public CommandTest {
 protected:
  void SetUp() override {
    Configure();
    Announce(R"("cloud": {"state": "up", "since": 1699999940, "limit": {"instances": 8}})");
    Put("/nodepool/components/builder/nb010000000001",
        R"({"hostname": "nb01", "state": "running", "version": "0.1.0"})");
    Put("/nodepool/components/pool/np010000000002",
        R"({"hostname": "np01", "state": "running", "id": "np01-PoolWorker.cloud-main-x", "name": "main", "locks_slots": true, )"
        R"("provider_name": "cloud", "supported_labels": ["small"]})");
    Build("b1", "ready", 1'699'990'000);
    Put("/nodepool/images/deb/builds/b1/providers/cloud/images/0000000001",
        R"({"state": "ready", "state_time": 1699990100})");
    Node node = ReadyNode();
    node.resources = {{"instances", 1}};
    AddNode(node);
    context_.ask_launcher = [this](LauncherAddress, std::string) { return Answer(); };
  }

  // An openstack-like provider whose pool boots `small` from image `deb`.
  void Configure() {
    config_->common.providers = {{ProviderName("cloud"), "openstack", {}}};
    config_->common.labels[LabelName("small")] = {LabelName("small"), 1, std::nullopt};
    config_->common.diskimages[ImageName("deb")].name = ImageName("deb");
    auto label = std::make_shared<driver::LabelConfig>();
    label->name = LabelName("small");
    label->diskimage = ImageName("deb");
    auto pool = std::make_shared<driver::PoolConfig>();
    pool->name = PoolName("main");
    pool->Offer(label);
    auto provider = std::make_shared<driver::ProviderConfig>();
    provider->name = ProviderName("cloud");
    provider->manages_images = true;
    provider->diskimages[ImageName("deb")] = std::make_shared<driver::ProviderDiskImage>();
    provider->pools[pool->name] = pool;
    config_->providers[provider->name] = provider;
  }

  void Announce(const std::string& providers) {
    Put("/nodepool/components/launcher/np010000000000",
        fmt::format(R"({{"hostname": "np01", "state": "running", "version": "0.1.0", "providers": {{{}}}}})",
                    providers));
  }
  void Build(const std::string& id, const std::string& state, int time) {
    Put("/nodepool/images/deb/builds/" + id,
        fmt::format(R"({{"state": "{}", "state_time": {}, "builder": "nb01"}})", state, time));
  }
  RequestId AddRequest(double created) {
    NodeRequest request;
    request.SetState(RequestState::kRequested, FromSeconds(created));
    request.node_types = {LabelName("small"), LabelName("small")};
    request.requestor = "zuul";
    return time_.Run(others_.requests.Create("200", std::move(request), false));
  }
  // What a launcher says of why requests wait.
  Task<std::string> Answer() {
    ++questions_;
    co_return answer_;
  }
  void Remove(const std::string& path) { zk_.tree().Delete({path, -1}, 0); }
  std::string Status() { return Shown({"status"}); }
  void UseTerminal(std::size_t width) {
    context_.is_terminal = true;
    context_.terminal_width = [width] { return width; };
  }

  std::string answer_ = R"({"requests": []})";
  int questions_ = 0;
};

}  // namespace nodepool::cli
