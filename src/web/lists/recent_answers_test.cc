#include "web/lists/recent_answers.h"

#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"

namespace nodepool::web {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RecentAnswersTest : public ::testing::Test {
 protected:
  Response Ask(const std::string& known = "") {
    Request request;
    if (!known.empty()) request.headers["if-modified-since"] = known;
    auto make = [this](std::string& body, WallTime) { body = std::to_string(++made_); };
    return answers_.Answer(request, "key", "text/plain", make);
  }
  static std::string LastModified(const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Last-Modified") return value;
    }
    return "";
  }

  testing::VirtualTime time_;
  int made_ = 0;
  RecentAnswers answers_{time_.loop()};
};

TEST_F(RecentAnswersTest, AnAnswerIsReusedForASecond) {
  EXPECT_EQ(Ask().body, "1");
  time_.Advance(milliseconds(999));
  EXPECT_EQ(Ask().body, "1");
  time_.Advance(milliseconds(1));
  EXPECT_EQ(Ask().body, "2");
}

TEST_F(RecentAnswersTest, NoLongerWhenTheClockIsSetBack) {
  Response former = Ask();
  time_.clock().ShiftWallClock(seconds(-3600));
  time_.Advance(seconds(1));
  EXPECT_EQ(Ask().body, "2");
  EXPECT_EQ(Ask(LastModified(former)).status, 200) << "what the client has is from before";
  EXPECT_EQ(Ask(LastModified(Ask())).status, 304);
}

}  // namespace
}  // namespace nodepool::web
