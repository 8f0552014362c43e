#include "web/lists/recent_answers.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <deque>

#include "async/testing/virtual_time.h"
#include "base/error.h"

namespace nodepool::web {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Answers are "1", "2" ... in the order in which they are begun.
class RecentAnswersTest : public ::testing::Test {
 protected:
  Task<> Make(std::string& body) {
    body = std::to_string(++begun_);
    Event& may_end = ends_.emplace_back();
    if (is_fast_) may_end.Set();
    co_await may_end.Wait();
    if (fault_) throw Error(*fault_);
  }
  Task<Response> Answer(std::string key, std::string known) {
    Request request;
    if (!known.empty()) request.headers["if-modified-since"] = known;
    auto make = [this](std::string& body, WallTime, Pace&) { return Make(body); };
    return answers_.Answer(request, key, "text/plain", make);
  }
  Response Ask(const std::string& known = "") { return time_.Run(Answer("key", known)); }

  // Asks without waiting for the answer, which comes to answered_.
  Task<> Take(std::string key) {
    Response response = co_await Answer(std::move(key), "");
    answered_.push_back(response.status == 200 ? response.whole_body() : std::to_string(response.status));
  }
  void Begin(const std::string& key) {
    is_fast_ = false;
    boost::asio::co_spawn(time_.loop().context(), Take(key), boost::asio::detached);
    time_.loop().RunReady();
  }
  // The answer that was begun as number `number` is made.
  void End(std::size_t number) {
    ends_.at(number - 1).Set();
    time_.loop().RunReady();
  }

  static std::string LastModified(const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Last-Modified") return value;
    }
    return "";
  }

  testing::VirtualTime time_;
  bool is_fast_ = true;
  int begun_ = 0;
  std::deque<Event> ends_;  // of the answers that were begun
  std::optional<Error> fault_;
  std::vector<std::string> answered_;
  RecentAnswers answers_{time_.loop()};
};

TEST_F(RecentAnswersTest, AnAnswerIsReusedForASecond) {
  EXPECT_EQ(Ask().whole_body(), "1");
  time_.Advance(milliseconds(999));
  EXPECT_EQ(Ask().whole_body(), "1");
  time_.Advance(milliseconds(1));
  EXPECT_EQ(Ask().whole_body(), "2");
}

TEST_F(RecentAnswersTest, NoLongerWhenTheClockIsSetBack) {
  Response former = Ask();
  time_.clock().ShiftWallClock(seconds(-3600));
  time_.Advance(seconds(1));
  EXPECT_EQ(Ask().whole_body(), "2");
  EXPECT_EQ(Ask(LastModified(former)).status, 200) << "what the client has is from before";
  EXPECT_EQ(Ask(LastModified(Ask())).status, 304);
}

TEST_F(RecentAnswersTest, ABodyInUseIsNotChanged) {
  Response held = Ask();
  time_.Advance(seconds(1));
  EXPECT_EQ(Ask().whole_body(), "2");
  EXPECT_EQ(held.whole_body(), "1");
}

TEST_F(RecentAnswersTest, OneIsMadeAtATimeAndServesAllWhoAskForIt) {
  Begin("a");
  Begin("a");
  Begin("b");
  EXPECT_EQ(begun_, 1);
  End(1);
  EXPECT_THAT(answered_, ElementsAre("1", "1"));
  EXPECT_EQ(begun_, 2);
  Begin("a");
  EXPECT_THAT(answered_, ElementsAre("1", "1", "1")) << "a fresh one waits for nothing";
  End(2);
  EXPECT_THAT(answered_, ElementsAre("1", "1", "1", "2"));
}

TEST_F(RecentAnswersTest, WhatWasBegunBeforeAChangeIsNotReused) {
  Begin("a");
  answers_.Clear();
  End(1);
  Begin("a");
  End(2);
  EXPECT_THAT(answered_, ElementsAre("1", "2"));
}

TEST_F(RecentAnswersTest, AFailureIsNotReused) {
  fault_.emplace(Verdict::kRetry, "away");
  Begin("a");
  Begin("a");
  End(1);
  EXPECT_THAT(answered_, ElementsAre("503"));
  fault_.reset();
  End(2);
  EXPECT_THAT(answered_, ElementsAre("503", "2"));
  fault_.emplace(Verdict::kFail, "unexpected");
  time_.Advance(seconds(1));
  is_fast_ = true;
  EXPECT_THROW(Ask(), Error);
}

}  // namespace
}  // namespace nodepool::web
