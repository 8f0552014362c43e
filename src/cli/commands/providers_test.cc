
#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ProviderPauseCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    auto provider = std::make_shared<driver::ProviderConfig>();
    provider->name = ProviderName("cloud");
    config_->providers[provider->name] = provider;
    config_->common.providers.push_back({provider->name, "fake", {}});
    context_.user = "alice@host";
  }
  int Pause(const std::string& provider, std::optional<std::string> reason = {}, bool is_drained = false) {
    std::vector<std::string> words = {"provider-pause", provider};
    if (reason) words.insert(words.end(), {"--reason", *reason});
    if (is_drained) words.emplace_back("--drain");
    return Run(std::move(words));
  }
  int Unpause(const std::string& provider) { return Run({"provider-unpause", provider}); }
};

// ACT-1
TEST_F(ProviderPauseCommandTest, TheSwitchSaysWhoAndWhy) {
  EXPECT_EQ(Pause("cloud", "upgrade", true), 0);
  auto record = zk_.tree().Get("/nodepool/paused-providers/cloud");
  EXPECT_THAT(record->data, HasSubstr(R"({"reason": "upgrade", "drain": true, "paused_by": "alice@host")"));
  EXPECT_EQ(Unpause("cloud"), 0);
  EXPECT_FALSE(Exists("/nodepool/paused-providers/cloud"));
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(Unpause("cloud"), 0);
  EXPECT_EQ(out_.str(), "Provider cloud is not paused\n");
}

// ACT-1
TEST_F(ProviderPauseCommandTest, AnUnknownProviderIsAnError) {
  EXPECT_EQ(Pause("clod"), 1);
  EXPECT_EQ(log_.Count("clod is not one of the configured providers"), 1);
  EXPECT_EQ(Unpause("clod"), 1);
  EXPECT_EQ(log_.Count("clod is not configured, and there are no records of it; did you mean cloud?"), 1);
  EXPECT_FALSE(Exists("/nodepool"));
}

// ACT-2, ACT-7
TEST_F(ProviderPauseCommandTest, EveryListShowsIt) {
  EXPECT_THAT(Shown({"info", "cloud"}), Not(HasSubstr("Paused")));
  Pause("cloud", "upgrade");
  Put("/nodepool/paused-providers/gone", R"({"paused_by": "bob"})");
  std::string listed = Shown({"provider-list"});
  EXPECT_THAT(listed, HasSubstr("paused by alice@host: upgrade"));
  EXPECT_THAT(listed, AllOf(HasSubstr("gone"), HasSubstr("paused by bob")));
  EXPECT_THAT(ShownAsJson({"provider-list"}), HasSubstr(R"("state":"paused")"));
  EXPECT_THAT(Shown({"status"}), HasSubstr("Provider cloud is paused by alice@host: upgrade"));
  EXPECT_THAT(Shown({"info", "cloud"}), HasSubstr("\n\nPaused:\n"));
  EXPECT_THAT(ShownAsJson({"info", "cloud"}), HasSubstr(R"("paused_by":"alice@host")"));
}

class EraseTest : public CommandTest {
 protected:
  EraseTest() {
    context_.read_line = [this] { return Answer(answer_); };
    ours_ = AddNode(ReadyNode());
    Node other = ReadyNode();
    other.provider = ProviderName("other");
    others_node_ = AddNode(other);
    for (std::string path :
         {"", "/debian", "/debian/builds", "/debian/builds/b1", "/debian/builds/b1/providers",
          "/debian/builds/b1/providers/cloud", "/debian/builds/b1/providers/cloud/images",
          "/debian/builds/b1/providers/cloud/images/0000000001",
          "/debian/builds/b1/providers/cloud/images/lock", "/debian/builds/b1/providers/other"}) {
      zk_.tree().Create({"/nodepool/images" + path, "{}"}, 0, time_.clock().Now());
    }
  }
  static Task<std::string> Answer(std::string answer) { co_return answer; }
  bool HasUploads() { return Exists("/nodepool/images/debian/builds/b1/providers/cloud"); }

  std::string answer_;
  NodeId ours_, others_node_;
};

// operations.16.8
TEST_F(EraseTest, NothingHappensUnlessItIsWanted) {
  std::uint64_t before = our_writes();
  for (std::string answer : {"n", "", "yes", "N"}) {
    answer_ = answer;
    EXPECT_EQ(Run({"erase", "cloud"}), 0);
  }
  EXPECT_THAT(out_.str(),
              HasSubstr("\nWARNING! This action is not reversible!\nErase ZooKeeper data for provider "
                        "cloud? [N/y] Aborting. No data erased.\n"));
  EXPECT_EQ(our_writes(), before);
}

// operations.16.8, B-info-erase
TEST_F(EraseTest, WhatIsOfTheProviderGoesThoughItIsLocked) {
  auto lock = time_.Run(others_.nodes.TryLock(ours_));
  answer_ = "y";
  EXPECT_EQ(Run({"erase", "cloud"}), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr("[N/y] Erasing build data for cloud...\nErasing node data for cloud...\n"));
  EXPECT_FALSE(Exists("/nodepool/nodes/" + ours_.value));
  EXPECT_FALSE(HasUploads());
  EXPECT_TRUE(Exists("/nodepool/images/debian/builds/b1/providers/other"))
      << "another provider's stay, and the build";
  EXPECT_EQ(ReadNode(others_node_)->state, NodeState::kReady);
}

// D-66
TEST_F(EraseTest, ANameThatNobodyKnowsIsNotAskedAbout) {
  config_->common.providers.push_back({.name = ProviderName("new")});
  for (std::string name : {"", "other/images", "clod"}) {
    EXPECT_EQ(Run({"erase", name}), 1) << name;
    EXPECT_EQ(log_.Count(name + " is not configured, and there are no records of it"), 1);
  }
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(Run({"erase", "new"}), 0);
  EXPECT_EQ(out_.str(), "There are no records of provider new\n");
}

}  // namespace

}  // namespace nodepool::cli
