#include "launcher/cleaners/lost_requests.h"

#include "launcher/cloud_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::seconds;
using Call = testing::FaultyZk::Call;
using Fault = testing::FaultyZk::Fault;
using ::testing::Contains;

class LostRequestsTest : public LauncherTest {
 protected:
  static constexpr const char* kLocks = "/nodepool/requests-lock";

  // A request whose launcher died after it had begun to create a node.
  RequestId LostRequest() {
    RequestId id = Request({"small"}, [&](NodeRequest& request) {
      request.SetState(RequestState::kPending, time_.loop().Now());
    });
    node_ = AddNode(NodeState::kInit, [&](Node& node) { node.allocated_to = id; });
    return id;
  }
  // Calls `act` just before the launcher's first write for which `is_moment` is true.
  void JustBefore(Running& launcher, std::function<bool(const Call&)> is_moment, std::function<void()> act) {
    launcher.recorder->FailWhen([=, this](const Call& call) {
      if (has_acted_ || !call.is_write || !is_moment(call)) return Fault::kNone;
      has_acted_ = true;
      act();
      return Fault::kNone;
    });
  }
  void Erase(const std::string& path) {
    zk::Result<zk::Children> children = zk_.tree().GetChildren(path);
    if (!children) return;
    for (const std::string& name : children->names) Erase(path + "/" + name);
    EXPECT_TRUE(zk_.tree().Delete({path, -1}, 0)) << path;
  }

  NodeId node_;
  bool has_acted_ = false;
  log::Capture log_;
};

// D-06: the consumer is done with the request while the launcher's cache does not yet show the node launched
// for it, so that the request's run has not ended.
TEST_F(LostRequestsTest, LockDirectoryIsRemovedWhenTheRequestWasGoneBeforeItsRunEnded) {
  Running& launcher = StartLauncher();
  bool does_cache_lag = true;
  launcher.recorder->HideOwnWrites();
  launcher.recorder->FailWhen([&](const Call& call) {
    bool is_cache = call.name == "Get" && call.path.starts_with("/nodepool/nodes/");
    return is_cache && does_cache_lag ? Fault::kBefore : Fault::kNone;
  });
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  DeleteRequest(id);
  time_.Advance(seconds(1));
  EXPECT_THAT(Children(kLocks), Contains(id.value));
  does_cache_lag = false;
  EXPECT_TRUE(Await([&] { return Children(kLocks).empty(); }, seconds(15)));
}

// D-06, D-08: its record is still there, though nobody can read it.
TEST_F(LostRequestsTest, LockDirectoryOfAMalformedRequestStays) {
  StartLauncher();
  RequestId id = Request({"small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  Put("/nodepool/requests/" + id.value, "{");
  time_.Advance(seconds(150));
  EXPECT_THAT(Children(kLocks), Contains(id.value));
  DeleteRequest(id);
  EXPECT_TRUE(Await([&] { return Children(kLocks).empty(); }, seconds(150)));
}

TEST_F(LostRequestsTest, ARequestThatVanishesWhileItIsResetIsNoError) {
  RequestId id = LostRequest();
  std::string lock = std::string(kLocks) + "/" + id.value;
  Put(lock, "");
  Running& launcher = StartLauncher();
  JustBefore(
      launcher, [lock](const Call& call) { return call.path.starts_with(lock + "/"); },
      [this, id, lock] {
        Erase("/nodepool/requests/" + id.value);
        Erase(lock);
      });
  ASSERT_TRUE(Await([&] { return has_acted_; }));
  time_.Advance(seconds(5));
  EXPECT_EQ(log_.Count("reset lost request failed"), 0);
  EXPECT_TRUE(Children(kLocks).empty());
}

TEST_F(LostRequestsTest, ANodeThatVanishesDoesNotPreventTheReset) {
  RequestId id = LostRequest();
  Running& launcher = StartLauncher();
  std::string node = "/nodepool/nodes/" + node_.value;
  JustBefore(
      launcher, [node](const Call& call) { return call.name == "Multi" && call.path == node; },
      [this, node] { Erase(node); });
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(5)));
  EXPECT_TRUE(has_acted_);
  EXPECT_EQ(log_.Count("reset lost request failed"), 0);
}

}  // namespace
}  // namespace nodepool::launcher
