#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <variant>
#include <vector>

#include "async/testing/virtual_time.h"
#include "base/random.h"
#include "cli/arguments.h"
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

}  // namespace nodepool::cli
