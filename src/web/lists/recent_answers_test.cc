#include "web/lists/recent_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <deque>

#include "async/testing/run_ready.h"
#include "async/testing/virtual_time.h"
#include "base/error.h"
#include "base/ids.h"
#include "web/site_for_test.h"

namespace nodepool::web {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::Pair;

// HTTP-6
TEST(GzipTest, PiecesOfAnySize) {
  SeededRandom random(1);
  for (std::size_t longest : {1u, 100u, 200'000u}) {
    GzipWriter writer;
    std::string text, compressed;
    for (int i = 0; i < 30; ++i) {
      std::string piece(random.Below(longest + 1), '\0');
      // The first pieces can hardly be compressed, the others well.
      for (char& c : piece) c = static_cast<char>(i < 10 ? random.Below(256) : 'a' + random.Below(2));
      writer.Write(compressed, piece);
      text += piece;
    }
    writer.Finish(compressed);
    EXPECT_TRUE(Gunzipped(compressed) == text) << longest;
  }
}

// HTTP-6
TEST(GzipTest, NothingIsAFileToo) {
  GzipWriter writer;
  std::string compressed;
  writer.Finish(compressed);
  EXPECT_EQ(Gunzipped(compressed), "");
}

// HTTP-6
TEST(GzipTest, TheLoopGoesOnMeanwhile) {
  testing::VirtualTime time;
  std::string text(1 << 20, 'x');
  Pace pace(time.loop(), Pace::kEachStep);
  EXPECT_TRUE(Gunzipped(time.Run(Gzipped(text, pace))) == text);
}

// The table of operations.6.1.
TEST(NegotiationTest, TextIsPreferred) {
  EXPECT_EQ(ChooseFormat(std::nullopt), Format::kText);
  for (const char* accept :
       {"*/*", "text/*", "text/plain", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "application/json, */*", "application/json, text/plain", "TEXT/Plain", "text/html;q=0.1"}) {
    EXPECT_EQ(ChooseFormat(accept), Format::kText) << accept;
  }
}

TEST(NegotiationTest, JsonWhenItIsWantedMore) {
  for (const char* accept : {"application/json", "application/*", "application/json;q=0.9, text/plain;q=0.5",
                             "Application/JSON ; q=1.0", "text/*;q=0, */*", "application/json, image/png"}) {
    EXPECT_EQ(ChooseFormat(accept), Format::kJson) << accept;
  }
}

TEST(NegotiationTest, NothingAcceptable) {  // D-62
  for (const char* accept :
       {"image/png", "application/json;q=0", "application/json;charset=utf-8", "", " ", "*/*;q=0"}) {
    EXPECT_EQ(ChooseFormat(accept), std::nullopt) << accept;
  }
}

TEST(NegotiationTest, WhatCannotBeReadMeansText) {
  for (const char* accept : {"json", "application/json;q=x", "/", "application/json;q=2", "*/json",
                             "application/json;q", "\x01/\x02", "application/ json"}) {
    EXPECT_EQ(ChooseFormat(accept), Format::kText) << accept;
  }
}

// HTTP-6
TEST(NegotiationTest, GzipWhereItIsPreferred) {
  for (const char* header : {"gzip", "gzip, deflate, br", "br, GZIP;q=0.5", "gzip ; q=1.0", "x-gzip", "*",
                             "deflate, *;q=0.1", "gzip;q=0.5, identity;q=0.5", "gzip;q=0.001", ", gzip ,"}) {
    EXPECT_TRUE(PrefersGzip(header)) << header;
  }
  for (const char* header : {"", "identity", "br", "x-gzip2", "gzip;q=0", "gzip; q=0.000", "*;q=0",
                             "gzip;q=0, *", "identity, *;q=0.5", "gzip;q=0.4, identity;q=0.5", "gzip;q=x",
                             "gzip;q=2", "gzip;q", "gzip;level=9", "gzip, b r", "gzip;"}) {
    EXPECT_FALSE(PrefersGzip(header)) << header;
  }
}

// Answers are "1", "2" ... in the order in which they are begun, followed by `more_`.
class RecentAnswersTest : public ::testing::Test {
 protected:
  Task<> Make(std::string& body) {
    body = std::to_string(++begun_) + more_;
    Event& may_end = ends_.emplace_back();
    if (is_fast_) may_end.Set();
    co_await may_end.Wait();
    if (fault_) throw Error(*fault_);
  }
  Task<Response> Answer(std::string key, std::string known) {
    Request request = request_;
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
    testing::RunReady(time_.loop());
  }
  // The answer that was begun as number `number` is made.
  void End(std::size_t number) {
    ends_.at(number - 1).Set();
    testing::RunReady(time_.loop());
  }

  static std::string LastModified(const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Last-Modified") return value;
    }
    return "";
  }

  testing::VirtualTime time_;
  Request request_;
  std::string more_;
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

// HTTP-6
TEST_F(RecentAnswersTest, ALargeAnswerIsCompressedOnce) {
  more_ = std::string(10'000, 'x');
  Response plain = Ask();
  request_.headers["accept-encoding"] = "gzip";
  Response first = Ask();
  EXPECT_EQ(Gunzipped(first.whole_body()), "1" + more_);
  EXPECT_THAT(first.headers, Contains(Pair("Content-Encoding", "gzip")));
  EXPECT_EQ(Ask().shared_body, first.shared_body);
  request_.headers.clear();
  EXPECT_EQ(Ask().shared_body, plain.shared_body);
  time_.Advance(seconds(1));
  request_.headers["accept-encoding"] = "gzip";
  EXPECT_EQ(Gunzipped(Ask().whole_body()), "2" + more_);
}

// HTTP-6
TEST_F(RecentAnswersTest, ASmallAnswerIsNotCompressed) {
  request_.headers["accept-encoding"] = "gzip";
  Response response = Ask();
  EXPECT_EQ(response.whole_body(), "1");
  EXPECT_THAT(response.headers, Not(Contains(Pair("Content-Encoding", "gzip"))));
  EXPECT_THAT(response.headers, Contains(Pair("Vary", "Accept, Accept-Encoding")));
}

// HTTP-8
TEST_F(RecentAnswersTest, NothingIsCompressedForThoseWhoShowAToken) {
  more_ = std::string(10'000, 'x');
  request_.headers["accept-encoding"] = "gzip";
  Response open = Ask();
  request_.headers["authorization"] = "Bearer reader";
  EXPECT_EQ(Ask().whole_body(), "1" + more_);
  EXPECT_NE(open.whole_body(), "1" + more_);
}

// HTTP-6
TEST_F(RecentAnswersTest, WhoHasACompressedAnswerIsToldSo) {
  more_ = std::string(10'000, 'x');
  request_.headers["accept-encoding"] = "gzip";
  Response known = Ask(LastModified(Ask()));
  EXPECT_EQ(known.status, 304);
  EXPECT_THAT(known.headers, Not(Contains(Pair("Content-Encoding", "gzip"))));
  EXPECT_THAT(known.headers, Contains(Pair("Vary", "Accept, Accept-Encoding")));
}

// HTTP-9
TEST_F(RecentAnswersTest, ManyWhoWantOneCompressedWaitForOne) {
  more_ = std::string(10'000, 'x');
  request_.headers["accept-encoding"] = "gzip";
  for (int i = 0; i < 5; ++i) Begin("a");
  Begin("b");
  EXPECT_EQ(begun_, 1) << "the others wait without a body";
  End(1);
  EXPECT_EQ(begun_, 2);
  ASSERT_EQ(answered_.size(), 5u);
  for (const std::string& answer : answered_) EXPECT_EQ(Gunzipped(answer), "1" + more_);
  End(2);
}

}  // namespace

}  // namespace nodepool::web
