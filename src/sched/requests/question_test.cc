#include "sched/requests/question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "model/node_request.h"

namespace nodepool::sched {

namespace {

class OfferedLabelsTest : public ::testing::Test {
 protected:
  Component& Add(ComponentKind kind, const char* hostname) {
    Component& component = components_.emplace_back();
    component.kind = kind;
    component.hostname = hostname;
    component.state = ComponentState::kRunning;
    return component;
  }
  void AddPool(const char* hostname, const char* provider, const char* label) {
    Component& pool = Add(ComponentKind::kPool, hostname);
    pool.provider_name = ProviderName(provider);
    pool.supported_labels = {LabelName(label)};
  }
  std::string Fault(const char* label) const {
    std::vector<const Component*> all;
    for (const Component& component : components_) all.push_back(&component);
    return FaultOfLabels({LabelName(label)}, all, configured_, known_);
  }

  std::list<Component> components_;
  std::set<LabelName> configured_;
  std::set<ProviderName> known_;
};

TEST_F(OfferedLabelsTest, AWrongNameIsRefusedWithTheNearestOne) {
  Add(ComponentKind::kLauncher, "np01").providers[ProviderName("cloud")].state = ProviderState::kUp;
  AddPool("np01", "cloud", "small");
  EXPECT_EQ(Fault("small"), "");
  EXPECT_EQ(Fault("smal"), "no launcher offers label smal; did you mean small?");
  EXPECT_EQ(Fault("windows-2022"), "no launcher offers label windows-2022");
}

TEST_F(OfferedLabelsTest, WithoutPoolsNothingIsKnown) { EXPECT_EQ(Fault("smal"), ""); }

// WHY-5
TEST_F(OfferedLabelsTest, ALauncherThatStartsMayOfferIt) {
  AddPool("np01", "cloud", "small");
  Component& starting = Add(ComponentKind::kLauncher, "np02");
  starting.state = ComponentState::kStopped;
  EXPECT_EQ(Fault("large"), "");
  starting.state = ComponentState::kRunning;
  starting.providers[ProviderName("other")].state = ProviderState::kFailing;
  EXPECT_EQ(Fault("large"), "") << "a provider that could never be used has announced no pool";
  AddPool("np02", "other", "large");
  EXPECT_EQ(Fault("large"), "");
  EXPECT_NE(Fault("medium"), "");
}

TEST_F(OfferedLabelsTest, WhatIsConfiguredHereIsKnown) {
  AddPool("np01", "cloud", "small");
  Add(ComponentKind::kLauncher, "np01").providers[ProviderName("away")].state = ProviderState::kFailing;
  EXPECT_EQ(Fault("large"), "");
  known_ = {ProviderName("cloud"), ProviderName("away")};
  configured_ = {LabelName("small"), LabelName("large")};
  EXPECT_EQ(Fault("large"), "");
  EXPECT_EQ(Fault("larg"), "no launcher offers label larg; did you mean large?");
}

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
