// What a cloud refuses: for quota, or since it has none (launcher.md 15.3).
#include "driver/refusal.h"

#include "launcher/launcher_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

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
