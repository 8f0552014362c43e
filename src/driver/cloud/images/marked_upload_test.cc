#include "driver/cloud/images/marked_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/attempt.h"
#include "async/testing/virtual_time.h"

namespace nodepool::driver::cloud {
namespace {

using ::testing::ElementsAre;

class MarkedUploadTest : public ::testing::Test {
 protected:
  Task<std::string> Upload() {
    upload.announce = [this](std::string id) { return Note("announced " + std::move(id)); };
    auto make = [this] { return Make(); };
    auto remove = [this] { return Remove(); };
    return UploadMarked(time.loop(), log::Logger("test"), upload, marks, make, remove);
  }
  Task<> Note(std::string what) {
    done.push_back(std::move(what));
    co_return;
  }
  Task<std::string> Make() {
    done.push_back("made");
    if (fails) throw Error(Verdict::kFail, "no");
    co_return "image-1";
  }
  Task<> Remove() {
    done.push_back("removed");
    if (hangs) co_await time.loop().SleepFor(std::chrono::hours(1));
    if (hangs) done.push_back("too late");
  }

  testing::VirtualTime time;
  ImageUploadParameters upload;
  UploadMarks marks{"cloud", "1", "2", "attempt", "debian-1-2.raw"};
  bool fails = false;
  bool hangs = false;
  std::vector<std::string> done;
};

TEST_F(MarkedUploadTest, ItIsAnnouncedFirst) {
  EXPECT_EQ(time.Run(Upload()), "image-1");
  EXPECT_THAT(done, ElementsAre("announced " + UnfinishedId(marks), "made"));
}

TEST_F(MarkedUploadTest, WhatAFailureLeavesIsRemoved) {
  fails = true;
  EXPECT_THROW(time.Run(Upload()), Error);
  EXPECT_EQ(done.back(), "removed");
}

TEST_F(MarkedUploadTest, ARemovalThatHangsIsGivenUpAndLogged) {
  fails = hangs = true;
  log::Capture log;
  EXPECT_THROW(time.Run(Upload()), Error);
  EXPECT_EQ(done.back(), "removed");
  EXPECT_EQ(log.Count("Something of the failed upload of debian-1-2.raw is left"), 1);
}

}  // namespace
}  // namespace nodepool::driver::cloud
