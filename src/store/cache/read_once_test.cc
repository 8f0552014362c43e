#include "store/cache/read_once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/cache/caches.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;

class ReadOnceTest : public ::testing::Test {
 protected:
  void TearDown() override { world_.Run(caches_.Stop()); }

  void PutNode(const std::string& id, const std::string& provider) {
    Node node = InitNode();
    node.provider = ProviderName(provider);
    world_.Put("/nodepool/nodes/" + id, ToJson(node));
  }
  void PutContender(const std::string& node) {
    world_.Put("/nodepool/nodes/" + node + "/lock/00000000000000000000000000000001__lock__0000000000", "");
  }

  World world_;
  Caches caches_{world_.time.loop(), world_.faulty};
  log::Capture log_;
};

// operations.16.27
TEST_F(ReadOnceTest, ACacheHasWhatThereIsAndFollowsNothing) {
  for (int i = 0; i < 300; ++i) PutNode(fmt::format("{:010}", i), "cloud");
  PutContender("0000000007");
  world_.Put("/nodepool/nodes/0000000400", "{broken");
  world_.Put("/nodepool/nodes/0000000401", "");
  world_.Run(caches_.nodes.ReadOnce(world_.store.tree));
  EXPECT_EQ(caches_.nodes.all().size(), 300u);
  EXPECT_TRUE(caches_.nodes.Find(NodeId("0000000007"))->is_locked());
  EXPECT_FALSE(caches_.nodes.Find(NodeId("0000000008"))->is_locked());
  EXPECT_EQ(log_.Count("0000000400"), 1);
  EXPECT_THAT(caches_.nodes.empty_nodes(), ElementsAre(NodeId("0000000401")));
  EXPECT_EQ(world_.faulty.CountWrites(), 0u);
  PutNode("0000000500", "cloud");
  world_.time.Advance(std::chrono::seconds(1));
  EXPECT_EQ(caches_.nodes.Find(NodeId("0000000500")), nullptr);
}

// operations.16.27
TEST_F(ReadOnceTest, OfOthersThanThoseWantedNothingElseIsRead) {
  PutNode("0000000001", "east");
  PutNode("0000000002", "west");
  for (const char* node : {"0000000001", "0000000002"}) PutContender(node);
  world_.faulty.ClearCalls();
  IsWanted is_wanted = [](std::string_view text) { return text.find("west") != text.npos; };
  world_.Run(caches_.nodes.ReadOnce(world_.store.tree, is_wanted));
  EXPECT_THAT(caches_.nodes.all(), ElementsAre(Key(NodeId("0000000002"))));
  EXPECT_TRUE(caches_.nodes.all().begin()->second.is_locked());
  std::vector<std::string> listed;
  for (const testing::FaultyZk::Call& call : world_.faulty.calls())
    if (call.name == "GetChildren") listed.push_back(call.path);
  EXPECT_THAT(listed, ElementsAre("/nodepool/nodes", "/nodepool/nodes/0000000002",
                                  "/nodepool/nodes/0000000002/lock"));
}

// operations.16.27
TEST_F(ReadOnceTest, EachKindOfRecordsIsTheSameAsInACacheThatFollows) {
  PutNode("0000000001", "cloud");
  PutContender("0000000001");
  world_.Put("/nodepool/requests/200-0000000001", ToJson(Requested("small")));
  world_.Put("/nodepool/requests-lock/200-0000000001/00000000000000000000000000000001__lock__0000000000", "");
  world_.Put("/nodepool/images/debian/pause", "");
  world_.Put("/nodepool/images/debian/builds/b1", R"({"state": "ready"})");
  world_.Put("/nodepool/images/debian/builds/b1/providers/cloud/images/0000000001", R"({"state": "ready"})");
  Caches following(world_.time.loop(), world_.faulty);
  for (Cache* cache : following.all()) cache->Start();
  world_.Run(following.WaitSynced());
  for (Cache* cache : caches_.all()) world_.Run(cache->ReadOnce(world_.store.tree));
  EXPECT_EQ(caches_.nodes.all().size(), following.nodes.all().size());
  EXPECT_EQ(caches_.requests.all().size(), 1u);
  const auto& directory = caches_.request_locks.all().at(RequestId("200-0000000001"));
  EXPECT_THAT(directory.contenders, ElementsAre("00000000000000000000000000000001__lock__0000000000"));
  EXPECT_EQ(directory.contenders, following.request_locks.all().at(RequestId("200-0000000001")).contenders);
  EXPECT_EQ(caches_.images.builds().size(), following.images.builds().size());
  EXPECT_EQ(caches_.images.uploads().size(), following.images.uploads().size());
  EXPECT_EQ(caches_.images.images(), following.images.images());
  world_.Run(following.Stop());
}

// operations.16.27
TEST_F(ReadOnceTest, AReadIsRepeatedAfterALostConnection) {
  for (int i = 0; i < 50; ++i) PutNode(fmt::format("{:010}", i), "cloud");
  for (std::size_t lost : {0u, 1u, 20u, 51u}) {
    Caches caches(world_.time.loop(), world_.faulty);
    world_.faulty.FailNth(lost, testing::FaultyZk::Fault::kAfter);
    world_.Run(caches.nodes.ReadOnce(world_.store.tree));
    EXPECT_EQ(caches.nodes.all().size(), 50u) << lost;
  }
}

// operations.16.27
TEST_F(ReadOnceTest, TheEndOfTheSessionEndsIt) {
  PutNode("0000000001", "cloud");
  world_.faulty.SetError(Error(Verdict::kLostSession, "expired"));
  world_.faulty.FailNth(1, testing::FaultyZk::Fault::kBefore);
  EXPECT_EQ(VerdictThrown([&] { world_.Run(caches_.nodes.ReadOnce(world_.store.tree)); }),
            Verdict::kLostSession);
  EXPECT_THAT(caches_.nodes.all(), IsEmpty());
}

// operations.16.27
TEST_F(ReadOnceTest, WithoutTheRootThereIsNothing) {
  world_.Run(caches_.nodes.ReadOnce(world_.store.tree));
  EXPECT_THAT(caches_.nodes.all(), IsEmpty());
}

}  // namespace
}  // namespace nodepool::store
