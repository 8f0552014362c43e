// The stream of a client's leases.
#include <list>

#include "async/task_group.h"
#include "web/live/live.h"
#include "web/requests/requests_site_for_test.h"

namespace nodepool::web {
namespace {

namespace json = boost::json;
using config::Scope;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LeaseStreamTest : public RequestsSiteTest {
 protected:
  // What a stream of the token's leases sends from now on.
  std::string& Listen(std::string token, const std::string& last_id = "") {
    if (!live_) {
      live_ = std::make_shared<Live>(time_.loop(), *running_->launcher, prometheus_,
                                     std::make_shared<RecentAnswers>(time_.loop()));
      streams_.emplace(LiveEndpoints(time_.loop(), live_, access_));
    }
    net::HttpRequest request = Asking("GET", "/api/v1/events?topics=leases", "", std::move(token));
    if (!last_id.empty()) request.headers["last-event-id"] = last_id;
    Response response = time_.Run(streams_->Answer(std::move(request)));
    EXPECT_EQ(response.status, 200);
    std::string& text = texts_.emplace_back();
    readers_.Spawn("listen", ReadUntilItEnds(text, response.stream));
    time_.Advance(std::chrono::milliseconds(60));
    return text;
  }
  static Task<> ReadUntilItEnds(std::string& text, std::shared_ptr<net::BodyStream> stream) {
    while (std::shared_ptr<const std::string> piece = co_await stream->Next()) text += *piece;
    text += "(the end)";
  }
  void TearDown() override {
    time_.Run(readers_.Stop());
    streams_.reset();
    live_.reset();
    RequestsSiteTest::TearDown();
  }

  metrics::Prometheus prometheus_;
  std::shared_ptr<Live> live_;
  std::optional<Router> streams_;
  std::list<std::string> texts_;
  TaskGroup readers_{time_.loop(), log::Logger("test")};
};

// REQ-24
TEST_F(LeaseStreamTest, AStreamShowsTheLeasesThatTheListShows) {
  std::string& own = Listen("ci");
  std::string& others = Listen("other");
  std::string& all = Listen("ops");
  std::string location = MakeHeld();
  std::string id = location.substr(location.rfind('/') + 1);
  NodeId node(std::string(Show(location).at("nodes").at(0).at("id").as_string()));
  ChangeNode(node, [](Node& record) { record.connection_port = json::object({{"token", "hidden"}}); });
  time_.Advance(std::chrono::milliseconds(100));
  EXPECT_THAT(own, AllOf(HasSubstr("event: hello"), HasSubstr("event: leases\ndata: {\"id\":\"" + id),
                         HasSubstr("\"state\":\"held\""), HasSubstr("hidden")));
  EXPECT_THAT(all, AllOf(HasSubstr(id), HasSubstr("\"state\":\"held\""), HasSubstr("redacted"),
                         Not(HasSubstr("hidden"))));
  EXPECT_THAT(others, AllOf(HasSubstr("event: hello"), Not(HasSubstr("event: leases"))));
  EXPECT_EQ(Ask("DELETE", location).status, 204);
  ASSERT_TRUE(Await([&] { return Nodes().empty(); }));
  time_.Advance(std::chrono::milliseconds(100));
  for (const std::string& text : {own, all})
    EXPECT_THAT(text, HasSubstr("data: {\"id\":\"" + id + "\",\"is_gone\":true}"));
  EXPECT_THAT(others, Not(HasSubstr("event: leases")));
}

// REQ-24
TEST_F(LeaseStreamTest, AStreamSaysWhyARequestWaits) {
  std::string& text = Listen("ci");
  std::string location = MakeWaiting();
  time_.Advance(seconds(2));
  std::string waits = json::serialize(Show(location).at("waits"));
  EXPECT_NE(waits, "[]");
  EXPECT_THAT(text, HasSubstr("\"waits\":" + waits));
  EXPECT_EQ(Show(location).at("reason").at("text"), "left to other main, which has its labels");
}

// REQ-24
TEST_F(LeaseStreamTest, AStreamThatReturnsCatchesUpAsItsOwnClientOnly) {
  std::string& text = Listen("ci");
  std::size_t begin = text.find("id: ") + 4;
  std::string last = text.substr(begin, text.find('\n', begin) - begin);
  MakeHeld();
  time_.Advance(seconds(10));
  EXPECT_THAT(Listen("ci", last), AllOf(HasSubstr("event: leases"), Not(HasSubstr("event: reset"))));
  EXPECT_THAT(Listen("other", last), Not(HasSubstr("event: leases")));
  EXPECT_THAT(Listen("ci", "elsewhere-7"), HasSubstr("event: reset"));
}

// REQ-25
TEST_F(LeaseStreamTest, AStreamEndsWithItsToken) {
  std::string& text = Listen("ci");
  std::string& other = Listen("other");
  access_.Configure(WithTokens({Token("other")}));
  Make(R"(["small"])", "other");
  time_.Advance(seconds(3));
  EXPECT_THAT(text, ::testing::EndsWith("(the end)"));
  EXPECT_THAT(other, AllOf(HasSubstr("event: leases"), Not(HasSubstr("(the end)"))));
  net::HttpRequest request = Asking("GET", "/api/v1/events?topics=nodes,leases");
  request.headers.erase("authorization");
  EXPECT_EQ(time_.Run(streams_->Answer(request)).status, 401);
  EXPECT_EQ(time_.Run(streams_->Answer(Asking("GET", "/api/v1/events?topics=leases"))).status, 401);
}

}  // namespace
}  // namespace nodepool::web
