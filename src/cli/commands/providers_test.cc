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

// Commands that query clouds.

using ::testing::HasSubstr;

// The contents of the cloud of a test.
struct FakeContents {
  std::vector<driver::ListedMachine> machines;
  std::vector<driver::ListedImage> images;
  std::vector<NodeId> deleted;
  bool is_broken = false;
  bool launches_nodes = true;
};

class ListedTools : public driver::OperatorTools {
 public:
  explicit ListedTools(FakeContents& contents) : contents_(contents) {}
  Task<> DeleteResources(const NodeId& id, const Node&) override {
    if (contents_.is_broken) throw Error(Verdict::kRetry, "the cloud is down");
    contents_.deleted.push_back(id);
    co_return;
  }
  Task<std::vector<driver::ListedMachine>> ListMachines() override {
    if (contents_.is_broken) throw Error(Verdict::kRetry, "the cloud is down");
    co_return contents_.machines;
  }
  Task<std::vector<driver::ListedImage>> ListImages() override { co_return contents_.images; }

 private:
  FakeContents& contents_;
};

class CloudsTest : public CommandTest {
 protected:
  CloudsTest() {
    for (const char* name : {"cloud", "other"}) {
      config_->providers[ProviderName(name)] = std::make_shared<driver::ProviderConfig>();
    }
    context_.make_tools = [this](const ProviderName& name) {
      return std::make_unique<ListedTools>(contents_[name]);
    };
  }
  std::map<ProviderName, FakeContents> contents_;
};

// D-68
TEST_F(CloudsTest, AliensAreMachinesThatNoNodeNames) {
  AddNode(ReadyNode());
  contents_[ProviderName("cloud")].machines = {{.name = "np1", .id = "i-1"},
                                               {.name = "np2",
                                                .id = "i-2",
                                                .address = "203.0.113.9",
                                                .metadata = {{"nodepool_provider_name", "cloud"}}},
                                               {.name = "mine", .id = "i-3"}};
  contents_[ProviderName("other")].machines = {{.name = "np1", .id = "i-1"}};
  EXPECT_EQ(ShownAsJson({"alien-list"}),
            R"([{"provider":"cloud","hostname":"np2","server_id":"i-2","public_ipv4":"203.0.113.9"},)"
            R"({"provider":"cloud","hostname":"mine","server_id":"i-3","public_ipv4":""},)"
            R"({"provider":"other","hostname":"np1","server_id":"i-1","public_ipv4":""}])"
            "\n");
  EXPECT_EQ(Shown({"alien-list", "cloud", "--nodepool-metadata"}),
            "+----------+----------+-----------+-------------+\n"
            "| Provider | Hostname | Server ID | IP          |\n"
            "+----------+----------+-----------+-------------+\n"
            "| cloud    | np2      | i-2       | 203.0.113.9 |\n"
            "+----------+----------+-----------+-------------+\n");
  for (const char* list : {"alien-list", "alien-image-list"}) {
    Outcome<int> shown = time_.Run(Attempt(Command({list, "clod"})));
    ASSERT_FALSE(shown);
    EXPECT_THAT(shown.error().message(), HasSubstr("clod is not configured"));
  }
  EXPECT_EQ(ShownAsJson({"alien-list", "--provider", "other"}),
            R"([{"provider":"other","hostname":"np1","server_id":"i-1","public_ipv4":""}])"
            "\n");
}

// O-alien-images
TEST_F(CloudsTest, ACloudThatCannotBeAskedIsAWarning) {
  contents_[ProviderName("cloud")].is_broken = true;
  contents_[ProviderName("other")].machines = {{.name = "x", .id = "i-9"}};
  EXPECT_THAT(Shown({"alien-list"}), HasSubstr("i-9"));
  EXPECT_EQ(log_.Count("Exception listing aliens for cloud: the cloud is down"), 1);
}

// As that of static hosts.
TEST_F(CloudsTest, ADriverThatCannotListIsLeftOut) {
  context_.make_tools = [](const ProviderName&) { return std::make_unique<driver::OperatorTools>(); };
  EXPECT_EQ(ShownAsJson({"alien-list"}), "[]\n");
  EXPECT_EQ(ShownAsJson({"alien-image-list"}), "[]\n");
  EXPECT_EQ(log_.Count("Exception"), 0);
}

// operations.5.7. Whether the provider's configuration lists the image does not matter (here it lists none):
// an image with a record is known, and a builder deletes it.
TEST_F(CloudsTest, AlienImagesAreNoReadyUploads) {
  const std::string uploads = "/nodepool/images/debian/builds/abc/providers/cloud/images/";
  Put(uploads + "0000000001", R"({"state": "failed", "external_id": "img-1"})");
  Put(uploads + "0000000002", R"({"state": "ready", "external_id": "img-2"})");
  contents_[ProviderName("cloud")].images = {{.name = "debian-1", .id = "img-1"},
                                             {.name = "debian-2", .id = "img-2"}};
  EXPECT_EQ(ShownAsJson({"alien-image-list"}),
            R"([{"provider":"cloud","name":"debian-1","image_id":"img-1"}])"
            "\n");
  EXPECT_EQ(Shown({"alien-image-list", "cloud"}),
            "+----------+----------+----------+\n"
            "| Provider | Name     | Image ID |\n"
            "+----------+----------+----------+\n"
            "| cloud    | debian-1 | img-1    |\n"
            "+----------+----------+----------+\n");
}

TEST_F(CloudsTest, DeletionAtOnce) {
  NodeId id = AddNode(ReadyNode());
  EXPECT_EQ(Run({"delete", "--now", id.value}), 0);
  EXPECT_EQ(contents_[ProviderName("cloud")].deleted, std::vector<NodeId>{id});
  EXPECT_FALSE(ReadNode(id));
  EXPECT_EQ(Run({"delete", "--now", id.value}), 1);
  EXPECT_EQ(log_.Count("Node id " + id.value + " not found"), 1);
}

TEST_F(CloudsTest, ADeletionThatFailsIsLeftToLaunchers) {
  NodeId id = AddNode(ReadyNode());
  contents_[ProviderName("cloud")].is_broken = true;
  EXPECT_EQ(Run({"delete", "--now", id.value}), 1);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kDeleting);
  EXPECT_TRUE(time_.Run(others_.nodes.TryLock(id)).has_value()) << "it is not locked";
}

// operations.5.5
TEST_F(CloudsTest, TheRecordOfAStaticNodeIsRemovedToo) {
  NodeId id = AddNode(ReadyNode());
  contents_[ProviderName("cloud")].launches_nodes = false;
  EXPECT_EQ(Run({"delete", "--now", id.value}), 0);
  EXPECT_FALSE(ReadNode(id));
}

TEST_F(CloudsTest, NodesOfOtherLaunchersProvidersStayAsTheyAre) {
  Node elsewhere = ReadyNode();
  elsewhere.provider = ProviderName("elsewhere");
  NodeId id = AddNode(elsewhere);
  EXPECT_EQ(Run({"delete", "--now", id.value}), 1);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kReady);
  EXPECT_EQ(log_.Count("Provider elsewhere for node ID"), 1);
}

}  // namespace

}  // namespace nodepool::cli
