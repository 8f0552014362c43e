#include "builder/builder_fixture_for_test.h"

namespace nodepool::builder {
namespace {

using Fault = testing::FaultyZk::Fault;

// A builder whose session ends at its n-th write, before or after the effect, for every n: its successor
// reaches the same result, with nothing left over.
class BuilderCrashTest : public BuilderTest, public ::testing::WithParamInterface<Fault> {
 protected:
  // Runs a builder until its n-th write; false if it needed fewer.
  bool RunUntilWrite(Host& host, std::size_t n) {
    std::size_t writes = 0;
    bool is_reached = false;
    host.recorder->FailWhen([&](const testing::FaultyZk::Call& call) {
      if (is_reached) return Fault::kBefore;
      if (!call.is_write || writes++ < n) return Fault::kNone;
      is_reached = true;
      return GetParam();
    });
    auto is_done = [&] { return is_reached || Uploads(ImageState::kReady).size() == 1; };
    EXPECT_TRUE(Await(is_done));
    return is_reached;
  }
  void ExpectGoodEnd(Host& host, std::size_t n) {
    EXPECT_TRUE(AwaitUploads(1)) << "write " << n;
    time_.Advance(std::chrono::minutes(3));
    EXPECT_EQ(Builds(ImageState::kReady).size(), Builds().size()) << "write " << n;
    EXPECT_EQ(Uploads().size(), 1u) << "write " << n;
    for (const std::string& name : host.files.names) {
      EXPECT_TRUE(time_.Run(store_->images.BuildExists(ParseLocalName(name)->build)))
          << "write " << n << ": " << name;
    }
  }
};

TEST_P(BuilderCrashTest, WhateverIsLeftIsTakenOver) {
  bool is_over = false;
  for (std::size_t n = 0; n < 100 && !is_over; ++n) {
    Host& host = Start("nb" + std::to_string(n));
    is_over = !RunUntilWrite(host, n);
    Kill(host);
    Restart(host);
    ExpectGoodEnd(host, n);
    // From the beginning with the next.
    for (const store::StoredBuild& build : Builds()) {
      store::StoredBuild marked = build;
      auto mark = [](ImageBuild& record) {
        record.state = ImageState::kDeleting;
        return store::Change::kWrite;
      };
      time_.Run(store_->images.Pause(ImageName("debian")));
      time_.Run(store_->images.UpdateUnlocked(marked, mark));
    }
    EXPECT_TRUE(Await([&] { return Builds().empty() && host.files.names.empty(); })) << "write " << n;
    Stop(host);
    time_.Run(store_->images.Unpause(ImageName("debian")));
  }
  EXPECT_TRUE(is_over) << "a build and an upload take fewer writes";
}

INSTANTIATE_TEST_SUITE_P(Faults, BuilderCrashTest, ::testing::Values(Fault::kBefore, Fault::kAfter));

}  // namespace
}  // namespace nodepool::builder
