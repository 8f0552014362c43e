#include "sched/requests/offered_labels.h"

#include <gtest/gtest.h>

#include <list>

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

}  // namespace
}  // namespace nodepool::sched
