#include "cli/commands/erase.h"

#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

using ::testing::HasSubstr;

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
    EXPECT_EQ(time_.Run(Erase(context_, ProviderName("cloud"), false)), 0);
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
  EXPECT_EQ(time_.Run(Erase(context_, ProviderName("cloud"), false)), 0);
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
    EXPECT_EQ(time_.Run(Erase(context_, ProviderName(name), false)), 1) << name;
    EXPECT_EQ(log_.Count(name + " is not configured, and there are no records of it"), 1);
  }
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(time_.Run(Erase(context_, ProviderName("new"), false)), 0);
  EXPECT_EQ(out_.str(), "There are no records of provider new\n");
}

}  // namespace
}  // namespace nodepool::cli
