#include "sched/requests/decline.h"

#include <gmock/gmock.h>

#include "model/decline_reasons.h"

namespace nodepool::sched {
namespace {

const WallTime kDeclinedAt = WallTime(std::chrono::seconds(1700000000));

NodeRequest Pending() {
  NodeRequest request;
  request.node_types = {LabelName("small")};
  request.SetState(RequestState::kPending, WallTime());
  return request;
}

RegisteredPool PoolOf(const std::string& launcher) {
  return {LauncherId(launcher), ProviderName("cloud"), 100, false, {LabelName("small")}};
}

TEST(DeclineTest, OtherPoolsMayStillServeIt) {
  Registry registry({PoolOf("a"), PoolOf("b")});
  NodeRequest request = Pending();
  Decline(request, {{LauncherId("a"), "cloud main: it is full"}}, registry, kDeclinedAt);
  EXPECT_EQ(request.state, RequestState::kRequested);
  EXPECT_EQ(request.declined_by, std::vector<LauncherId>{LauncherId("a")});
  EXPECT_EQ(request.state_time, kDeclinedAt);
  EXPECT_THAT(DeclineReasons(request), ::testing::ElementsAre("cloud main: it is full"));
}

TEST(DeclineTest, TheLastDeclineFailsIt) {
  Registry registry({PoolOf("a"), PoolOf("b")});
  NodeRequest request = Pending();
  request.declined_by = {LauncherId("b")};
  Decline(request, {{LauncherId("a"), "cloud main: it is full"}}, registry, kDeclinedAt);
  EXPECT_EQ(request.state, RequestState::kFailed);
}

TEST(DeclineTest, EachIsNotedOnce) {
  Registry registry({PoolOf("a")});
  NodeRequest request = Pending();
  request.declined_by = {LauncherId("a")};
  Decline(request, {{LauncherId("a"), "cloud main: it is full"}}, registry, kDeclinedAt);
  EXPECT_EQ(request.declined_by.size(), 1u);
  EXPECT_EQ(request.state, RequestState::kFailed);
}

TEST(DeclineTest, AnEmptyRegistryFailsNothing) {
  NodeRequest request = Pending();
  Decline(request, {{LauncherId("a"), "cloud main: it is full"}}, Registry(), kDeclinedAt);
  EXPECT_EQ(request.state, RequestState::kRequested);
}

}  // namespace
}  // namespace nodepool::sched
