// Commands that query clouds.
#include <gmock/gmock.h>

#include "cli/fixture_for_test.h"

namespace nodepool::cli {
namespace {

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
