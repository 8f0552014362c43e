#include <gmock/gmock.h>

#include "store/cache/job_cache.h"
#include "store/cache/node_cache.h"
#include "store/store_for_test.h"

namespace nodepool::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class JobsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_.Start();
    world_.Run(cache_.WaitSynced());
  }
  void TearDown() override { world_.Run(cache_.Stop()); }

  NoteResult AddNote(std::string node, std::string job = "unit") {
    HoldNote note{job, HoldComment(job), FromSeconds(1'700'000'000), {}};
    NoteResult result =
        world_.Run(world_.store.jobs.AddHoldNote(NodeId(node), note, cache_.hold_notes_version()));
    world_.Run(cache_.CatchUp());
    return result;
  }

  World world_;
  JobCache cache_{world_.time.loop(), world_.faulty};
  log::Capture log_;
};

// D-67
TEST_F(JobsTest, RulesAreStoredByNumber) {
  JobId first = world_.Run(world_.store.jobs.CreateRule({"unit", 2, {}}));
  JobId second = world_.Run(world_.store.jobs.CreateRule({"unit", 2, {}}));
  EXPECT_EQ(first.value, "0000000000");
  EXPECT_EQ(world_.Data("/nodepool/jobs/0000000001"), R"({"name": "unit", "hold_on_failure": 2})");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.rules().size(), 2u);
  EXPECT_TRUE(world_.Run(world_.store.jobs.DeleteRule(first)));
  EXPECT_FALSE(world_.Run(world_.store.jobs.DeleteRule(first)));
  EXPECT_FALSE(world_.Run(world_.store.jobs.DeleteRule(JobId("holds"))));
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.rules().begin()->first, second);
}

// D-08: each version is reported once, and the readable records are listed.
TEST_F(JobsTest, MalformedOnesAreReportedOnceAndSkipped) {
  world_.Put("/nodepool/jobs/0000000003", "{");
  world_.Put("/nodepool/jobs/0000000004", R"({"name": "a", "hold_on_failure": 1})");
  world_.Put("/nodepool/jobs/holds/0000000007", "[]");
  world_.Put("/nodepool/jobs/unheard", "{");
  world_.Put("/nodepool/jobs/0000000004/0000000001", "{");
  world_.Put("/nodepool/jobs/holdsome/0000000001", "{");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.malformed_count(), 2u);
  EXPECT_EQ(cache_.rules().size(), 1u);
  EXPECT_THAT(cache_.hold_notes(), IsEmpty());
  EXPECT_EQ(log_.Count("/nodepool/jobs/0000000003"), 1);
  world_.Put("/nodepool/jobs/0000000003", R"({"name": "b"})");
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.rules().size(), 2u);
  EXPECT_EQ(cache_.malformed_count(), 2u);
}

// D-67
TEST_F(JobsTest, ANodeIsLockedTogetherWithItsNote) {
  Node node;
  node.SetState(NodeState::kUsed, world_.time.loop().Now());
  NodeId noted = world_.Run(world_.store.nodes.Create(node));
  NodeId other = world_.Run(world_.store.nodes.Create(node));
  NodeId bad = world_.Run(world_.store.nodes.Create(node));
  ASSERT_EQ(AddNote(noted.value), NoteResult::kOutdated);
  ASSERT_EQ(AddNote(noted.value), NoteResult::kDone);
  world_.Put("/nodepool/jobs/holds/" + bad.value, "[]");
  auto locked = world_.Run(world_.store.nodes.TryLockFree(noted));
  ASSERT_TRUE(locked);
  EXPECT_EQ(locked->note->hold_job, "unit");
  EXPECT_EQ(locked->node.record().state, NodeState::kUsed);
  EXPECT_TRUE(locked->node.is_held());
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLock(noted))) << "it is locked";
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(noted)));
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(other))->note);
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(bad))->note) << "the cache reports it";
  EXPECT_FALSE(world_.Run(world_.store.nodes.TryLockFree(NodeId("0000000099")))) << "there is no such node";
}

TEST_F(JobsTest, AHoldNoteIsDecidedOnAllExistingOnes) {
  EXPECT_EQ(AddNote("0000000001"), NoteResult::kOutdated) << "there was no place for them";
  EXPECT_EQ(AddNote("0000000001"), NoteResult::kDone);
  EXPECT_EQ(world_.Data("/nodepool/jobs/holds/0000000001"),
            R"({"hold_job": "unit", "comment": "Automatically held after failing unit", "created_time": )"
            R"(1700000000.0})");
  EXPECT_EQ(AddNote("0000000001"), NoteResult::kThere);
  std::int32_t seen = cache_.hold_notes_version();
  EXPECT_EQ(AddNote("0000000002"), NoteResult::kDone);
  EXPECT_EQ(world_.Run(world_.store.jobs.AddHoldNote(NodeId("0000000003"), {"unit", "", {}, {}}, seen)),
            NoteResult::kOutdated);
  EXPECT_FALSE(world_.Exists("/nodepool/jobs/holds/0000000003"));
  EXPECT_THAT(cache_.HoldNotesByJob(),
              ElementsAre(Pair("unit", ElementsAre(NodeId("0000000001"), NodeId("0000000002")))));
  world_.Run(world_.store.jobs.RemoveHoldNote(NodeId("0000000001")));
  world_.Run(world_.store.jobs.RemoveHoldNote(NodeId("0000000001")));
  world_.Run(cache_.CatchUp());
  EXPECT_EQ(cache_.FindHoldNote(NodeId("0000000001")), nullptr);
  EXPECT_EQ(cache_.hold_notes().size(), 1u);
}

TEST_F(JobsTest, NodesAreFoundByNameAndByTheJobTheyAreHeldFor) {
  NodeCache nodes(world_.time.loop(), world_.faulty);
  nodes.Start();
  Node node;
  node.hostname = "a.example.org";
  node.external_id = "i-1";
  NodeId first = world_.Run(world_.store.nodes.Create(node));
  node.hostname = "a";
  node.external_id = boost::json::object{{"id", "i-1"}};
  node.SetState(NodeState::kHold, {});
  node.hold_job = "unit";
  NodeId second = world_.Run(world_.store.nodes.Create(node));
  world_.Run(nodes.WaitSynced());
  world_.Run(nodes.CatchUp());
  EXPECT_THAT(nodes.Named("a.example.org"), ElementsAre(first));
  EXPECT_THAT(nodes.Named("a"), ElementsAre(first, second));
  EXPECT_THAT(nodes.Named("i-1"), ElementsAre(first));
  EXPECT_THAT(nodes.Named(""), IsEmpty());
  EXPECT_THAT(nodes.HeldByJob(), ElementsAre(Pair("unit", ElementsAre(second))));
  auto change = [](Node& record) {
    record.SetState(NodeState::kDeleting, {});
    record.hostname = "b";
    return Change::kWrite;
  };
  world_.Run(world_.store.nodes.UpdateUnlocked(second, change));
  world_.Run(nodes.CatchUp());
  EXPECT_THAT(nodes.HeldByJob(), IsEmpty());
  EXPECT_THAT(nodes.Named("a"), ElementsAre(first));
  EXPECT_THAT(nodes.Named("b"), ElementsAre(second));
  world_.Run(nodes.Stop());
}

}  // namespace
}  // namespace nodepool::store
