#include "driver/driver.h"
#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {

// A provider that runs and reports that it cannot be used.

namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

class ProviderFaultTest : public LauncherTest {
 protected:
  driver::ProviderFault Fault(std::string cause = kCause) {
    return {std::move(cause), time_.loop().SteadyNow() + seconds(30)};
  }
  driver::ProviderFault Outage() {
    driver::ProviderFault fault = Fault();
    fault.is_outage = true;
    return fault;
  }
  void Report(std::optional<driver::ProviderFault> fault) {
    script().report_fault(fault);
    time_.Advance(seconds(1));
  }
  Launcher& launcher() { return *launchers_.front()->launcher; }
  ProviderStatus Status() { return launcher().Providers().at(0); }
  ProviderReport Announced() {
    std::string name = Children("/nodepool/components/launcher").at(0);
    auto data = time_.Run(client_->Get("/nodepool/components/launcher/" + name));
    return ParseComponent(ComponentKind::kLauncher, data->data)->providers[ProviderName("cloud")];
  }
  std::vector<WaitReason> WaitsOf(const RequestId& id) {
    std::vector<WaitReason> waits;
    launcher().ForEachRequest([&](const RequestStatus& status) {
      if (status.id == id) waits = status.waits;
      return true;
    });
    return waits;
  }
  static int CountErrors(const log::Capture& log) {
    return static_cast<int>(std::ranges::count(log.records(), log::Level::kError, &log::Record::level));
  }

  static constexpr const char* kCause = "logging in at http://cloud.example/v3: 401 Unauthorized";
};

TEST_F(ProviderFaultTest, IsShownUntilItEnds) {  // D-30, D-64
  StartLauncher();
  WallTime start = time_.loop().Now();
  EXPECT_TRUE(launcher().is_ready());
  time_.Advance(seconds(1));
  WallTime failure = time_.loop().Now();
  Report(Fault());
  EXPECT_FALSE(launcher().is_ready());
  EXPECT_EQ(launcher().WhyNotReady(), "Provider cloud cannot be used: " + std::string(kCause) + ".");
  EXPECT_EQ(Status().state, ProviderState::kFailing);
  EXPECT_FALSE(Status().health.is_up);
  EXPECT_EQ(Status().health.fault, kCause);
  EXPECT_EQ(Status().next_start, seconds(29));
  EXPECT_EQ(Announced(), (ProviderReport{ProviderState::kFailing, failure, kCause, {}}));
  time_.Advance(seconds(30));
  Report(Fault());
  EXPECT_EQ(Announced().since, failure) << "it fails since then, however often it was tried";
  EXPECT_EQ(Status().health.since, failure);
  Report(std::nullopt);
  EXPECT_TRUE(launcher().is_ready());
  EXPECT_EQ(Status().health.fault, "");
  EXPECT_EQ(Announced().state, ProviderState::kUp);
  EXPECT_GT(Announced().since, start) << "it is up since its recovery";
}

TEST_F(ProviderFaultTest, EachCauseIsLoggedOnceAndTheEndOnce) {  // D-30
  log::SetLevel("nodepool.ProviderManager", log::Level::kDebug);
  StartLauncher();
  log::Capture log;
  for (int i = 0; i < 3; ++i) {
    Report(Fault());
    Report(Fault("503 Service Unavailable"));
  }
  EXPECT_EQ(CountErrors(log), 2);
  EXPECT_EQ(log.Count("Provider cloud cannot be used: " + std::string(kCause) + "; tried again in 30 s"), 3)
      << "repetitions are for debugging";
  Report(std::nullopt);
  Report(std::nullopt);
  EXPECT_EQ(log.Count("Provider cloud can be used again"), 1);
  Report(Fault());
  EXPECT_EQ(CountErrors(log), 3);
  log::SetLevel("nodepool.ProviderManager", log::Level::kInfo);
}

TEST_F(ProviderFaultTest, EndlesslyDifferentCausesNeedNoEndlessMemory) {
  HealthRecord health(time_.loop(), ProviderName("cloud"), log::Logger("test"));
  log::Capture log;
  for (int i = 0; i < 100; ++i) health.Failed("x", Fault(std::to_string(i)));
  health.Failed("x", Fault("99"));
  health.Failed("x", Fault("0"));
  EXPECT_EQ(CountErrors(log), 101) << "the last is known, the first was dropped";
}

// What the cloud has is not known: requests wait for the provider, or go elsewhere (D-26, D-30).
TEST_F(ProviderFaultTest, RequestsWaitForAProviderThatCouldNeverBeUsed) {
  script().fault_at_start = Fault();
  label_config("small").min_ready = 1;
  log::Capture log;
  StartLauncher();
  RequestId id = Request({"small"});
  time_.Advance(minutes(2));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  ASSERT_EQ(WaitsOf(id).size(), 1u);
  EXPECT_EQ(WaitsOf(id).front().code, "provider-unusable");
  EXPECT_EQ(WaitsOf(id).front().text, "cannot be used: " + std::string(kCause));
  EXPECT_EQ(Status().pools.at(0).labels.at(0).fault, kCause);
  EXPECT_TRUE(Nodes().empty());
  EXPECT_EQ(CountErrors(log), 1) << "one line for all labels";
  EXPECT_EQ(log.Count("Min-ready of"), 0);
  Report(std::nullopt);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(5)));
}

// The last known state of the cloud stays in use.
TEST_F(ProviderFaultTest, AProviderThatCouldBeUsedServesOn) {
  StartLauncher();
  Report(Fault());
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled));
}

// BB-40
TEST_F(ProviderFaultTest, WhileAProviderIsAwayRequestsWaitForItButTakeFreeNodes) {
  StartLauncher();
  AddNode(NodeState::kReady);
  Report(Outage());
  RequestId ready = Request({"small"});
  RequestId id = Request({"small"}, [](NodeRequest& request) { request.reuse = false; });
  EXPECT_TRUE(AwaitState(ready, RequestState::kFulfilled, seconds(5)));
  time_.Advance(minutes(2));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  EXPECT_EQ(script().launches, 0);
  ASSERT_EQ(WaitsOf(id).size(), 1u);
  EXPECT_EQ(WaitsOf(id).front().code, "provider-unusable");
  EXPECT_EQ(WaitsOf(id).front().text, "cannot be used: " + std::string(kCause));
  Report(std::nullopt);
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(2)));
}

TEST_F(ProviderFaultTest, WhileAProviderIsAwayRequestsGoElsewhere) {
  AddPool("other", "main", {"small"}).priority = 200;
  StartLauncher();
  Report(Outage());
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(5)));
  EXPECT_EQ(NodeOf(id).provider, ProviderName("other"));
}

// The preferred pool of another launcher, whose record says that it cannot use the provider.
TEST_F(ProviderFaultTest, AFailingPoolElsewhereIsNotLeftARequest) {
  AddForeignPool([](Component& pool) {
    pool.priority = 1;
    pool.supported_labels = {LabelName("small")};
  });
  StartLauncher();
  RequestId id = Request({"small"});
  time_.Advance(seconds(20));
  EXPECT_EQ(Read(id)->state, RequestState::kRequested);
  Component launcher;
  launcher.hostname = "elsewhere";
  launcher.state = ComponentState::kRunning;
  launcher.providers[ProviderName("other")] = {ProviderState::kFailing, time_.loop().Now(), kCause, {}};
  Put("/nodepool/components/launcher/elsewhere", ToJson(launcher));
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(5)));
}

TEST_F(ProviderFaultTest, ErrorsOfLabelsThatFollowFromItAreNotLogged) {
  StartLauncher();
  script().label_errors.emplace(LabelName("small"), Error(Verdict::kRetry, "no flavors are known"));
  log::Capture log;
  Report(Fault());
  RequestId id = Request({"small"});
  time_.Advance(seconds(20));
  EXPECT_EQ(CountErrors(log), 1);
  EXPECT_EQ(WaitsOf(id).front().text, "cannot be used: " + std::string(kCause));
  Report(std::nullopt);
  EXPECT_EQ(log.Count("Label small cannot be launched now: no flavors are known"), 1);
  EXPECT_EQ(WaitsOf(id).front().code, "provider-fault");
  script().label_errors.clear();
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(11)));
}

TEST_F(ProviderFaultTest, APredecessorsFaultIsNotTheSuccessors) {
  StartLauncher();
  Report(Fault());
  auto report_of_predecessor = script().report_fault;
  auto changed = std::make_shared<driver::LoadedConfig>(*config_);
  auto provider = std::make_shared<driver::ProviderConfig>(provider_config());
  provider->fingerprint = "changed";
  changed->providers[ProviderName("cloud")] = provider;
  launcher().Reconfigure(changed);
  time_.Advance(seconds(1));
  EXPECT_TRUE(launcher().is_ready());
  report_of_predecessor(Fault());
  time_.Advance(seconds(1));
  EXPECT_TRUE(launcher().is_ready());
}

// A fault of the configuration's surroundings, such as a cloud that no file describes (configuration.md 12).
class ConfiguredFaultTest : public ProviderFaultTest {
 protected:
  void SetFault(const std::string& provider, std::string fault) {
    auto& known = config_->providers[ProviderName(provider)];
    auto changed = std::make_shared<driver::ProviderConfig>(*known);
    changed->fault = std::move(fault);
    changed->fingerprint = provider + changed->fault;
    known = changed;
  }
};

TEST_F(ConfiguredFaultTest, TheOtherProvidersStart) {  // D-30
  AddPool("sick", "main", {"large"});
  SetFault("sick", "there is no cloud nowhere");
  StartLauncher();
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
  EXPECT_FALSE(launcher().is_ready());
  EXPECT_EQ(launcher().WhyNotReady(), "Provider sick cannot be used: there is no cloud nowhere.");
}

TEST_F(ConfiguredFaultTest, AtAReloadAProviderThatRunsKeepsItsConfiguration) {
  SetFault("cloud", "");
  Running& running = StartLauncher();
  config_ = std::make_shared<driver::LoadedConfig>(*config_);
  SetFault("cloud", "there is no cloud nowhere");
  log::Capture log;
  running.launcher->Reconfigure(config_);
  time_.Advance(seconds(30));
  EXPECT_EQ(log.Count("it keeps the previous one: there is no cloud nowhere"), 1);
  EXPECT_EQ(script().stops, 0);
  RequestId id = Request({"small"});
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
}

// What a cloud refuses: for quota, or since it has none (launcher.md 15.3).

using driver::Refusal;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class RefusalTest : public LauncherTest {
 protected:
  // Launches of the label end so, until this is called again.
  void Refuse(const std::string& label, Refusal refusal, const std::string& provider = "cloud") {
    script(provider).on_launch = [label, refusal](const Node& node) {
      if (node.has_label(LabelName(label))) throw refusal;
    };
  }
  void Admit(const std::string& provider = "cloud") { script(provider).on_launch = nullptr; }
  std::vector<std::string> WaitsOf(const RequestId& id) {
    std::vector<std::string> texts;
    launchers_.front()->launcher->ForEachRequest([&](const RequestStatus& status) {
      if (status.id == id) {
        for (const WaitReason& wait : status.waits) texts.push_back(wait.text);
      }
      return true;
    });
    return texts;
  }

  const Refusal kNoQuota{Refusal::Kind::kQuota, "quota exceeded"};
  const Refusal kNoCapacity{Refusal::Kind::kCapacity, "no valid host"};
};

TEST_F(RefusalTest, OfALabelHoldsNoOtherLabelBack) {  // BB-41
  label_config("small").min_ready = 1;
  Refuse("large", kNoQuota);
  StartLauncher();
  RequestId refused = Request({"large"});
  for (int i = 0; i < 6; ++i) {
    time_.Advance(seconds(7));
    RequestId other = Request({"small"}, [](NodeRequest& request) { request.reuse = false; });
    EXPECT_TRUE(AwaitState(other, RequestState::kFulfilled, seconds(2)));
  }
  EXPECT_EQ(Read(refused)->state, RequestState::kPending);
  EXPECT_TRUE(Await([&] { return FreeNodes() == 1; }, minutes(2))) << "min-ready nodes of other labels, too";
  EXPECT_THAT(WaitsOf(refused), Contains(AllOf(HasSubstr("large"), Not(HasSubstr("cores")))));
  RequestId second = Request({"large"});
  time_.Advance(minutes(1));
  EXPECT_EQ(Read(second)->state, RequestState::kRequested) << "one is enough to find out";
  Admit();
  EXPECT_TRUE(AwaitState(refused, RequestState::kFulfilled));
  EXPECT_TRUE(AwaitState(second, RequestState::kFulfilled));
}

// BB-43. Otherwise min-ready takes the place again before the request tries.
TEST_F(RefusalTest, WhatIsDeletedForARequestIsItsOwnUntilItHasTried) {
  label_config("small").min_ready = 2;
  script().delete_time = seconds(5);
  script().launch_error = [this](int) -> std::optional<Error> {
    if (script().instances.size() <= 2) return std::nullopt;
    return Error(Verdict::kQuota, "quota exceeded");
  };
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  RequestId refused = Request({"large"});
  EXPECT_TRUE(AwaitState(refused, RequestState::kFulfilled, minutes(1)));
}

// BB-43: a request that cannot succeed costs others no more than the time of a deletion.
TEST_F(RefusalTest, WhatIsDeletedInVainIsGivenBack) {
  label_config("small").min_ready = 2;
  script().delete_time = seconds(5);
  Refuse("large", kNoQuota);
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  RequestId refused = Request({"large"});
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; })) << "deleted for the request";
  EXPECT_TRUE(Await([&] { return FreeNodes() == 2; }, seconds(90)));
  EXPECT_EQ(Read(refused)->state, RequestState::kPending);
}

TEST_F(RefusalTest, EachTimeInVainTwiceAsManyAreDeleted) {  // BB-44
  label_config("small").min_ready = 3;
  script().delete_time = seconds(5);
  Refuse("large", kNoQuota);
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 3; }));
  RequestId refused = Request({"large"});
  ASSERT_TRUE(Await([&] { return FreeNodes() == 2; }));
  ASSERT_TRUE(Await([&] { return FreeNodes() == 3; }, minutes(2)));
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }, minutes(10)));
  Admit();
  EXPECT_TRUE(AwaitState(refused, RequestState::kFulfilled));
}

TEST_F(RefusalTest, AfterAllWereDeletedInVainUnusedNodesAreSpared) {  // BB-44
  label_config("small").min_ready = 1;
  script().delete_time = seconds(5);
  Refuse("large", kNoQuota);
  StartLauncher();
  Request({"large"});
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }, minutes(10)));
    ASSERT_TRUE(Await([&] { return FreeNodes() == 0; }, minutes(10)));
  }
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }, minutes(2)));
  EXPECT_FALSE(Await([&] { return FreeNodes() == 0; }, minutes(50)));
  EXPECT_TRUE(Await([&] { return FreeNodes() == 0; }, minutes(20)))
      << "others may have taken the place of used ones";
}

// A later request takes the place in the pool during each refusal, and gives its node back in the end. The
// place is made free again, and the next launch is refused: the cloud is full of another pool's unused node.
TEST_F(RefusalTest, WhatThePoolLacksNowAndThenDoesNotHideWhatTheCloudLacks) {  // BB-49
  AddPool("cloud", "main", {"small", "large"}).max_servers = 2;
  AddPool("cloud", "spare", {"other"});
  NodeId unused = AddNode(NodeState::kReady, [](Node& node) {
    node.pool = PoolName("spare");
    node.type = {LabelName("other")};
    node.resources = {{"instances", 1}, {"cores", 2}};
  });
  script().on_launch = [this, unused](const Node& node) {
    if (node.has_label(LabelName("large")) && std::ranges::count(script().deleted, unused) == 0)
      throw kNoQuota;
  };
  StartLauncher();
  RequestId refused = Request({"small", "large"});
  ASSERT_TRUE(Await([&] { return FreeNodes() < static_cast<int>(Nodes().size()); }));
  RequestId later = Request({"small", "small"}, {}, "300");
  EXPECT_TRUE(AwaitState(refused, RequestState::kFulfilled, minutes(30)));
  auto nodes = Take(refused);
  Return(nodes);
  EXPECT_TRUE(AwaitState(later, RequestState::kFulfilled, minutes(10)));
}

TEST_F(RefusalTest, OfANamedResourceHoldsBackWhatNeedsIt) {
  AddPool("cloud", "main", {"small", "large"}).limits = {{"instances", 100}};
  script().need = {{"instances", 1}, {"cores", 2}};
  Refuse("large", Refusal(Refusal::Kind::kQuota, "no more cores", {"cores"}));
  StartLauncher();
  RequestId refused = Request({"large"});
  ASSERT_TRUE(AwaitState(refused, RequestState::kPending));
  time_.Advance(seconds(20));
  EXPECT_THAT(WaitsOf(refused), Contains(AllOf(HasSubstr("cores"), Not(HasSubstr("instances")))));
  RequestId other = Request({"small"});
  time_.Advance(seconds(1));
  Admit();
  EXPECT_TRUE(AwaitState(refused, RequestState::kFulfilled));
  EXPECT_TRUE(AwaitState(other, RequestState::kFulfilled));
}

TEST_F(RefusalTest, LackOfCapacityIsWaitedForWhereNobodyElseCanServe) {  // BB-42
  Refuse("large", kNoCapacity);
  StartLauncher();
  RequestId id = Request({"large"});
  time_.Advance(minutes(10));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_LE(script().launches, 30) << "with growing pauses";
  EXPECT_TRUE(AwaitState(Request({"small"}), RequestState::kFulfilled, seconds(2)));
  Admit();
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(90)));
}

TEST_F(RefusalTest, LackOfCapacityIsWaitedForUntilLaunchTimeout) {
  provider_config().launch_timeout = minutes(20);
  Refuse("large", kNoCapacity);
  StartLauncher();
  RequestId id = Request({"large"});
  time_.Advance(minutes(19));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_TRUE(AwaitState(id, RequestState::kFailed, minutes(3)));
  EXPECT_THAT(DeclineReasons(*Read(id)),
              Contains(AllOf(HasSubstr("no valid host"), HasSubstr("launch-timeout"))));
}

TEST_F(RefusalTest, ARequestThatLacksCapacityGoesToAnotherPoolAtOnce) {
  AddPool("other", "main", {"large"}).priority = 200;
  Refuse("large", kNoCapacity);
  StartLauncher();
  RequestId id = Request({"large"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(10)));
  EXPECT_EQ(NodeOf(id).provider, ProviderName("other"));
  EXPECT_EQ(script("other").launches, 1);
}

// BB-42: its workers in other launchers see the same cloud, and one of them may just have died.
TEST_F(RefusalTest, AnotherLauncherOfTheSamePoolHasNoMoreCapacity) {
  Refuse("large", kNoCapacity);
  StartLauncher("np01");
  StartLauncher("np02");
  RequestId id = Request({"large"});
  time_.Advance(minutes(5));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  EXPECT_THAT(DeclineReasons(*Read(id)), ::testing::IsEmpty());
  Admit();
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(90)));
}

TEST_F(RefusalTest, AnotherPoolThatLacksCapacityIsTheLastAndWaits) {
  AddPool("other", "main", {"large"}).priority = 200;
  Refuse("large", kNoCapacity);
  Refuse("large", kNoCapacity, "other");
  StartLauncher();
  RequestId id = Request({"large"});
  time_.Advance(minutes(5));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  Admit("other");
  EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(90)));
}

}  // namespace

}  // namespace nodepool::launcher
