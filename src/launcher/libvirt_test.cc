#include "launcher/libvirt_fixture_for_test.h"

namespace nodepool::launcher {

// Nodes of the libvirt driver while its images, settings and hosts change.

namespace {

using drivers::libvirt::ParseDomain;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Loss = drivers::libvirt::testing::FakeHypervisor::Loss;

constexpr const char* kBuilt = "diskimage: built, memory: 512, disk: 2";

// --- Images ----------------------------------------------------------------------

class ImageTest : public LibvirtTest {
 protected:
  void SetUp() override {
    LibvirtTest::SetUp();
    label_ = kBuilt;
  }
  // The description of the only machine.
  std::string DescribeMachineOf(const RequestId& id) {
    EXPECT_TRUE(AwaitState(id, RequestState::kFulfilled));
    return OnlyDomain();
  }
};

// LV-21
TEST_F(ImageTest, TheNextAttemptTakesTheNewestWhenTheImageIsDeletedBeforeItsClone) {
  std::string old = AddUpload(), deleted = AddUpload();
  prepare_ = [&](FakeHypervisor& host) {
    host.at_write = [&](Loss moment, const std::string& write) {
      if (moment == Loss::kBefore && write.ends_with(".root")) Host().volumes.erase(deleted);
    };
  };
  StartLauncher();
  log::Capture log;
  RequestId id = Request({"small"});
  ASSERT_TRUE(Await([&] { return !Host().volumes.contains(deleted); }));
  MarkUpload(deleted);
  EXPECT_THAT(DescribeMachineOf(id), HasSubstr(old));
  EXPECT_EQ(log.Count("Launch attempt 1 of 3 in provider here failed; the next one follows"), 1);
}

// LV-21
TEST_F(ImageTest, ARequestWaitsWhileItsImageIsNowhere) {
  std::string old = AddUpload(), deleted = AddUpload();
  Host().volumes.erase(deleted);
  StartLauncher();
  RequestId id = Request({"small"});
  time_.Advance(seconds(20));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  MarkUpload(deleted);
  EXPECT_THAT(DescribeMachineOf(id), HasSubstr(old));
}

// LV-20
TEST_F(ImageTest, MachinesBootFromTheNewestImageAndFromTheOneBeforeWhenItIsDeleted) {
  std::string old = AddUpload();
  StartLauncher();
  RequestId first = Request({"small"});
  EXPECT_THAT(DescribeMachineOf(first), HasSubstr(old));
  auto machine = Take(first);
  Return(machine);
  ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
  std::string newest = AddUpload();
  RequestId second = Request({"small"});
  EXPECT_THAT(DescribeMachineOf(second), HasSubstr(newest));
  machine = Take(second);
  Return(machine);
  ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
  MarkUpload(newest);
  RequestId third = Request({"small"});
  EXPECT_THAT(DescribeMachineOf(third), HasSubstr(old));
}

// --- Calls -----------------------------------------------------------------------

// LV-42
TEST_F(LibvirtTest, TenIdleMinutesCostThirtyCalls) {
  top_label_ = "min-ready: 1";
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  time_.Advance(minutes(5));
  int before = Connection().calls;
  time_.Advance(minutes(10));
  EXPECT_LE(Connection().calls - before, 30);
}

// --- Room ------------------------------------------------------------------------

// Hosts of 8 cores, on which others have domains.
class RoomTest : public LibvirtTest {
 protected:
  static std::string Foreign(int cores) {
    return fmt::format("<domain><name>x</name><uuid>foreign</uuid><memory>1</memory><vcpu>{}</vcpu></domain>",
                       cores);
  }
  void AddForeign(const std::string& host, int cores) { Host(host).domains["foreign"] = Foreign(cores); }
};

// LV-25
TEST_F(RoomTest, TheQuotaFollowsForeignDomainsAtOnce) {
  StartLauncher();
  time_.Run(Connection().StartDomain(Foreign(8)));
  time_.Advance(seconds(2));
  RequestId refused = Request({"small"});
  EXPECT_TRUE(AwaitState(refused, RequestState::kFailed, seconds(5)));
  Connection().EndDomain("foreign");
  time_.Advance(seconds(2));
  RequestId served = Request({"small"});
  EXPECT_TRUE(AwaitState(served, RequestState::kFulfilled));
}

// LV-26
TEST_F(RoomTest, PartsOfSeveralHostsAreNoRoomAndAreTriedEachHalfMinute) {
  host_names_ = {"a", "b"};
  label_ = "cloud-image: debian, memory: 512, vcpus: 8";
  AddForeign("a", 4);
  AddForeign("b", 4);
  StartLauncher();
  log::Capture log;
  RequestId id = Request({"small"});
  time_.Advance(minutes(5));
  EXPECT_EQ(Read(id)->state, RequestState::kPending);
  constexpr const char* kRefusal = "a: 4 of 8 cores free, needs 8; b: 4 of 8 cores free, needs 8";
  int refusals = log.Count(std::string("refused for quota: no host has room for label small (") + kRefusal);
  EXPECT_LE(refusals, 10);
  EXPECT_GE(refusals, 6);
  EXPECT_EQ(Connection().domains.size(), 1u);
  Connection("b").EndDomain("foreign");
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, seconds(15)));
  EXPECT_EQ(NodeOf(id).host_id, "b");
}

// LV-27
TEST_F(RoomTest, ANodeIsMadeWhereTheReusedNodeOfItsRequestIs) {
  host_names_ = {"a", "b"};
  top_label_ = "min-ready: 1";
  StartLauncher();
  ASSERT_TRUE(Await([&] { return FreeNodes() == 1; }));
  AddForeign("a", 4);
  RequestId id = Request({"small", "small"});
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled));
  for (const store::LockedNode& node : Take(id)) {
    EXPECT_EQ(node.record().host_id, "a") << "although host b has more room";
  }
}

// --- Settings and hosts ----------------------------------------------------------------

class ChangeTest : public LibvirtTest {
 protected:
  void SetUp() override {
    LibvirtTest::SetUp();
    prepare_ = [](FakeHypervisor& host) { host.boot_time = minutes(1); };
  }
  // A request whose machine boots on host a.
  RequestId RequestThatBoots() {
    RequestId id = Request({"small"});
    EXPECT_TRUE(Await([&] { return !Host().domains.empty(); }));
    return id;
  }
};

// LV-44
TEST_F(ChangeTest, ALaunchEndsOnTheSettingsThatItBeganWith) {
  Running& running = StartLauncher();
  RequestId first = RequestThatBoots();
  label_ = "cloud-image: debian, memory: 1024";
  Reconfigure(running);
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(first).resources->at("ram"), 512);
  EXPECT_THAT(Host().domains, SizeIs(1)) << "it was not begun anew";
  EXPECT_EQ(ParseDomain(OnlyDomain()).memory, 512);
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(second).resources->at("ram"), 1024);
}

// LV-44
TEST_F(ChangeTest, AHostThatIsAddedTakesTheNextMachine) {
  Running& running = StartLauncher();
  RequestId first = RequestThatBoots();
  host_names_ = {"a", "b"};
  Reconfigure(running);
  RequestId second = Request({"small"});
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  ASSERT_TRUE(AwaitState(second, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(first).host_id, "a");
  EXPECT_EQ(NodeOf(second).host_id, "b");
}

// LV-44
TEST_F(ChangeTest, ALaunchEndsOnAHostThatIsRemovedAndItsNodeNamesTheHost) {
  host_names_ = {"a", "b"};
  Running& running = StartLauncher();
  RequestId first = RequestThatBoots();
  host_names_ = {"b"};
  Reconfigure(running);
  ASSERT_TRUE(AwaitState(first, RequestState::kFulfilled));
  EXPECT_EQ(NodeOf(first).host_id, "a");
  log::Capture log;
  auto machine = Take(first);
  Return(machine);
  EXPECT_TRUE(Await([&] { return log.Count("provider here no longer has the host a; add it again") > 0; }));
  ASSERT_THAT(Nodes(), SizeIs(1));
  EXPECT_EQ(MachineOf(*Read(Nodes()[0])).host, "a");
  host_names_ = {"a", "b"};
  Reconfigure(running);
  EXPECT_TRUE(Await([&] { return Nodes().empty() && Host().domains.empty(); }));
}

// A launcher of the libvirt driver dies at any moment of a machine's life: at each write of a record, and at
// each call that changes its host.

using std::chrono::minutes;
using Fault = testing::FaultyZk::Fault;
using Loss = drivers::libvirt::testing::FakeHypervisor::Loss;
using ::testing::SizeIs;

constexpr int kLossMoments = 28;

class AnyWriteTest : public LibvirtTest, public ::testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  // The next launcher dies at this write, counted from 0, before it is carried out or after.
  void DieAt(int moment, bool is_carried_out) {
    auto is_now = [this, moment] { return !is_dead_ && writes_++ == moment; };
    prepare_ = [=, this](FakeHypervisor& host) {
      host.is_cut = [this, generation = launchers_.size()] { return is_dead_ && generation == 0; };
      host.at_write = [=, this](Loss when, const std::string&) {
        if (when == Loss::kBefore) is_due_ = is_now();
        if (!is_due_ || (when == Loss::kAfter) != is_carried_out) return;
        is_due_ = false;
        is_dead_ = true;
        throw Error(Verdict::kRetry, "the process has died");
      };
    };
    Running& launcher = StartLauncher("np01");
    launcher.recorder->FailWhen([=, this](const testing::FaultyZk::Call& call) {
      if (is_dead_) return Fault::kBefore;
      is_dead_ = call.is_write && is_now();
      return !is_dead_ ? Fault::kNone : is_carried_out ? Fault::kAfter : Fault::kBefore;
    });
  }
  // Lets time pass until `is_over`, or the launcher is dead and another one is started.
  void Follow(std::function<bool()> is_over) {
    if (launchers_.size() > 1) return;
    EXPECT_TRUE(Await([&] { return is_dead_ || is_over(); }, minutes(5)));
    if (!is_dead_) return;
    Kill(*launchers_.front());
    prepare_ = {};
    StartLauncher("np02");
  }
  bool IsClean() {
    return Nodes().empty() && Host().domains.empty() && Host().volumes.size() == 1 &&
           Children("/nodepool/requests-lock").empty();
  }

  int writes_ = 0;
  bool is_due_ = false;
  bool is_dead_ = false;
};

// LV-28, LV-53
TEST_P(AnyWriteTest, NothingRemainsThatNoRecordNames) {
  auto [moment, is_carried_out] = GetParam();
  DieAt(moment, is_carried_out);
  RequestId id = Request({"small"});
  Follow([&] { return Read(id)->state == RequestState::kFulfilled; });
  ASSERT_TRUE(AwaitState(id, RequestState::kFulfilled, minutes(3)));
  std::vector<store::LockedNode> nodes = Take(id);
  ASSERT_THAT(nodes, SizeIs(1));
  EXPECT_TRUE(Host().domains.contains(MachineOf(nodes[0].record()).uuid));
  Return(nodes);
  Follow([&] { return IsClean(); });
  EXPECT_TRUE(Await([&] { return IsClean(); }, minutes(3)));
  bool is_last = moment == kLossMoments - 1;
  EXPECT_FALSE(is_last && is_dead_) << "a machine's life has more writes: add moments";
}

INSTANTIATE_TEST_SUITE_P(Writes, AnyWriteTest,
                         ::testing::Combine(::testing::Range(0, kLossMoments), ::testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "CarriedOut" : "Lost");
                         });

}  // namespace

}  // namespace nodepool::launcher
