// A launcher of the libvirt driver dies at any moment of a machine's life: at each write of a record, and at
// each call that changes its host.
#include "launcher/libvirt_fixture_for_test.h"

namespace nodepool::launcher {
namespace {

using std::chrono::minutes;
using Fault = testing::FaultyZk::Fault;
using Loss = drivers::libvirt::testing::FakeHypervisor::Loss;
using ::testing::SizeIs;

constexpr int kMoments = 28;

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
  bool is_last = moment == kMoments - 1;
  EXPECT_FALSE(is_last && is_dead_) << "a machine's life has more writes: add moments";
}

INSTANTIATE_TEST_SUITE_P(Writes, AnyWriteTest,
                         ::testing::Combine(::testing::Range(0, kMoments), ::testing::Bool()),
                         [](const auto& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "CarriedOut" : "Lost");
                         });

}  // namespace
}  // namespace nodepool::launcher
