#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "async/testing/virtual_time.h"
#include "base/ids.h"
#include "cli/command.h"
#include "zk/testing/memory_zk.h"

namespace nodepool::cli {

// Runs commands against a tree in memory, in virtual time. `others_` is the ZooKeeper client of all other
// processes: launchers and other clients.
class CommandTest : public ::testing::Test {
 protected:
  CommandTest()
      : our_client_(zk_.Connect()),
        others_client_(zk_.Connect()),
        store_(time_.loop(), *our_client_, random_),
        others_(time_.loop(), *others_client_, random_),
        context_{{time_.loop(), random_, out_}, store_, config_} {
    time_.RunUntil([this] {
      return our_client_->state() == zk::SessionState::kConnected &&
             others_client_->state() == zk::SessionState::kConnected;
    });
  }
  ~CommandTest() override {
    time_.Run(our_client_->Close());
    time_.Run(others_client_->Close());
  }

  NodeId AddNode(Node node) { return time_.Run(others_.nodes.Create(std::move(node))); }

  static Node ReadyNode() {
    Node node;
    node.SetState(NodeState::kReady, FromSeconds(1'700'000'000));
    node.provider = ProviderName("cloud");
    node.pool = PoolName("main");
    node.type = {LabelName("small")};
    node.external_id = "i-1";
    node.interface_ip = "203.0.113.7";
    return node;
  }

  std::optional<Node> ReadNode(const NodeId& id) {
    auto node = time_.Run(others_.nodes.Read(id));
    return node ? std::optional(node->record) : std::nullopt;
  }

  // The command of a command line without the program's name. Error(kInvalid): the line is refused.
  static Task<int> CommandOn(Context& context, std::vector<std::string> words) {
    std::ostringstream usage;
    std::variant<Invocation, int> parsed = ParseArguments(std::move(words), usage, usage);
    if (!std::holds_alternative<Invocation>(parsed)) throw Error(Verdict::kInvalid, usage.str());
    Invocation invocation = std::get<Invocation>(std::move(parsed));
    if (invocation.offline_command) co_return invocation.offline_command(*context.config, context.out);
    Task<int> command = invocation.command(context);
    co_return co_await std::move(command);
  }
  Task<int> Command(std::vector<std::string> words) { return CommandOn(context_, std::move(words)); }
  // Returns the exit status.
  int Run(std::vector<std::string> words) { return time_.Run(Command(std::move(words))); }

  // What the command prints.
  std::string Shown(std::vector<std::string> words) {
    out_.str("");
    EXPECT_EQ(Run(std::move(words)), 0);
    return out_.str();
  }
  std::string ShownAsJson(std::vector<std::string> words) {
    words.emplace_back("--json");
    return Shown(std::move(words));
  }

  // Creates or replaces a znode with its parents.
  void Put(const std::string& path, const std::string& data) {
    std::string parent = path.substr(0, path.rfind('/'));
    if (!parent.empty() && !Exists(parent)) Put(parent, "");
    if (!zk_.tree().Create({path, data}, 0, time_.clock().Now())) {
      zk_.tree().Set({path, data, -1}, 0, time_.clock().Now());
    }
  }

  bool Exists(const std::string& path) { return zk_.tree().Exists(path).has_value(); }

  std::uint64_t our_writes() const { return zk_.counters(*our_client_).writes; }

  testing::VirtualTime time_;
  testing::MemoryZk zk_{time_.loop()};
  SeededRandom random_{1};
  std::unique_ptr<zk::Client> our_client_;
  std::unique_ptr<zk::Client> others_client_;
  store::Store store_;
  store::Store others_;
  std::ostringstream out_;
  log::Capture log_;
  std::shared_ptr<driver::LoadedConfig> config_ = std::make_shared<driver::LoadedConfig>();
  Context context_;
};

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
