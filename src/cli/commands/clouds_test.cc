// Commands that query clouds.
#include <gmock/gmock.h>

#include "cli/commands/aliens.h"
#include "cli/commands/change_node.h"
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

class ListedProvider : public driver::Provider {
 public:
  explicit ListedProvider(FakeContents& contents) : contents_(contents) {}
  const driver::ProviderConfig& config() const override { return config_; }
  Task<> Start() override { co_return; }
  Task<> Stop() override { co_return; }
  bool launches_nodes() const override { return contents_.launches_nodes; }
  std::unique_ptr<driver::NodeRequestHandler> RequestHandler(std::shared_ptr<const driver::PoolConfig>,
                                                             const store::StoredRequest&) override {
    return nullptr;
  }
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
  Task<> CleanupLeakedResources() override { co_return; }

 private:
  FakeContents& contents_;
  driver::ProviderConfig config_;
};

class CloudsTest : public CommandTest {
 protected:
  CloudsTest() {
    for (const char* name : {"cloud", "other"}) {
      config_->providers[ProviderName(name)] = std::make_shared<driver::ProviderConfig>();
    }
    context_.make_provider = [this](const ProviderName& name) {
      return std::make_unique<ListedProvider>(contents_[name]);
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
  EXPECT_EQ(ShownAsJson(AlienListing(std::nullopt, false)),
            R"([{"provider":"cloud","hostname":"np2","server_id":"i-2","public_ipv4":"203.0.113.9"},)"
            R"({"provider":"cloud","hostname":"mine","server_id":"i-3","public_ipv4":""},)"
            R"({"provider":"other","hostname":"np1","server_id":"i-1","public_ipv4":""}])"
            "\n");
  EXPECT_EQ(Shown(AlienListing(ProviderName("cloud"), true)),
            "+----------+----------+-----------+-------------+\n"
            "| Provider | Hostname | Server ID | IP          |\n"
            "+----------+----------+-----------+-------------+\n"
            "| cloud    | np2      | i-2       | 203.0.113.9 |\n"
            "+----------+----------+-----------+-------------+\n");
  for (const ListingCommand& unknown :
       {AlienListing(ProviderName("clod"), false), AlienImageListing(ProviderName("clod"))}) {
    Outcome<int> shown = time_.Run(Attempt(ShowListing(context_, unknown, {})));
    ASSERT_FALSE(shown);
    EXPECT_THAT(shown.error().message(), HasSubstr("clod is not configured"));
  }
  View of_other{.output = Output::kJson, .filter = {{listing::Kind::kProvider, {"other"}}}};
  EXPECT_EQ(Shown(AlienListing(std::nullopt, false), of_other),
            R"([{"provider":"other","hostname":"np1","server_id":"i-1","public_ipv4":""}])"
            "\n");
}

// O-alien-images
TEST_F(CloudsTest, ACloudThatCannotBeAskedIsAWarning) {
  contents_[ProviderName("cloud")].is_broken = true;
  contents_[ProviderName("other")].machines = {{.name = "x", .id = "i-9"}};
  EXPECT_THAT(Shown(AlienListing(std::nullopt, false)), HasSubstr("i-9"));
  EXPECT_EQ(log_.Count("Exception listing aliens for cloud: the cloud is down"), 1);
}

// A driver that lists nothing, as that of static hosts.
class SilentProvider : public ListedProvider {
 public:
  using ListedProvider::ListedProvider;
  Task<std::vector<driver::ListedMachine>> ListMachines() override { return Provider::ListMachines(); }
  Task<std::vector<driver::ListedImage>> ListImages() override { return Provider::ListImages(); }
};

TEST_F(CloudsTest, ADriverThatCannotListIsLeftOut) {
  context_.make_provider = [this](const ProviderName& name) {
    return std::make_unique<SilentProvider>(contents_[name]);
  };
  EXPECT_EQ(ShownAsJson(AlienListing(std::nullopt, false)), "[]\n");
  EXPECT_EQ(ShownAsJson(AlienImageListing(std::nullopt)), "[]\n");
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
  EXPECT_EQ(ShownAsJson(AlienImageListing(std::nullopt)),
            R"([{"provider":"cloud","name":"debian-1","image_id":"img-1"}])"
            "\n");
  EXPECT_EQ(Shown(AlienImageListing(ProviderName("cloud"))),
            "+----------+----------+----------+\n"
            "| Provider | Name     | Image ID |\n"
            "+----------+----------+----------+\n"
            "| cloud    | debian-1 | img-1    |\n"
            "+----------+----------+----------+\n");
}

TEST_F(CloudsTest, DeletionAtOnce) {
  NodeId id = AddNode(ReadyNode());
  EXPECT_EQ(time_.Run(DeleteNow(context_, {id.value})), 0);
  EXPECT_EQ(contents_[ProviderName("cloud")].deleted, std::vector<NodeId>{id});
  EXPECT_FALSE(ReadNode(id));
  EXPECT_EQ(time_.Run(DeleteNow(context_, {id.value})), 1);
  EXPECT_EQ(log_.Count("Node id " + id.value + " not found"), 1);
}

TEST_F(CloudsTest, ADeletionThatFailsIsLeftToLaunchers) {
  NodeId id = AddNode(ReadyNode());
  contents_[ProviderName("cloud")].is_broken = true;
  EXPECT_EQ(time_.Run(DeleteNow(context_, {id.value})), 1);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kDeleting);
  EXPECT_TRUE(time_.Run(others_.nodes.TryLock(id)).has_value()) << "it is not locked";
}

// operations.5.5
TEST_F(CloudsTest, TheRecordOfAStaticNodeIsRemovedToo) {
  NodeId id = AddNode(ReadyNode());
  contents_[ProviderName("cloud")].launches_nodes = false;
  EXPECT_EQ(time_.Run(DeleteNow(context_, {id.value})), 0);
  EXPECT_FALSE(ReadNode(id));
}

TEST_F(CloudsTest, NodesOfOtherLaunchersProvidersStayAsTheyAre) {
  Node elsewhere = ReadyNode();
  elsewhere.provider = ProviderName("elsewhere");
  NodeId id = AddNode(elsewhere);
  EXPECT_EQ(time_.Run(DeleteNow(context_, {id.value})), 1);
  EXPECT_EQ(ReadNode(id)->state, NodeState::kReady);
  EXPECT_EQ(log_.Count("Provider elsewhere for node ID"), 1);
}

}  // namespace
}  // namespace nodepool::cli
