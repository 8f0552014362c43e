#include "web/live/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <vector>

#include "async/task_group.h"
#include "model/node_request.h"
#include "web/live/change_log.h"
#include "web/live/live.h"
#include "web/site_for_test.h"

namespace nodepool::web {

namespace {

const Topics kAll = *ReadTopics("");
const Topics kNodesOnly = *ReadTopics("nodes");

SteadyTime At(int seconds) { return SteadyTime(std::chrono::seconds(seconds)); }

std::string EventsFrom(EventRing& ring, EventRing::Position from, Topics topics) {
  std::optional<EventRing::Part> part = ring.Read(from, topics);
  return part ? *part->text : "lost";
}

TEST(EventRing, EventsAreTextOfAStream) {
  EventRing ring("e");
  EventRing::Position begin = ring.end();
  ring.Append(Topic::kNodes, R"({"id":"1"})", At(0));
  ring.Append(Topic::kRequests, "{}", At(0));
  EXPECT_EQ(EventsFrom(ring, begin, kAll),
            "id: e-1\nevent: nodes\ndata: {\"id\":\"1\"}\n\nid: e-2\nevent: requests\ndata: {}\n\n");
  EXPECT_EQ(EventsFrom(ring, begin, kNodesOnly), "id: e-1\nevent: nodes\ndata: {\"id\":\"1\"}\n\n");
  EXPECT_EQ(EventsFrom(ring, ring.end(), kAll), "");
}

TEST(EventRing, ReadersOfTheSameShareTheText) {
  EventRing ring("e");
  ring.Append(Topic::kNodes, "{}", At(0));
  EXPECT_EQ(ring.Read(1, kAll)->text, ring.Read(1, kNodesOnly)->text) << "one event is not copied";
  EventRing::Part before = *ring.Read(1, kAll);
  ring.Append(Topic::kNodes, "{}", At(0));
  EXPECT_EQ(ring.Read(1, kAll)->text, ring.Read(1, kAll)->text);
  EXPECT_NE(ring.Read(1, kAll)->text, before.text);
}

TEST(EventRing, WhatIsKeptIsBounded) {  // PAGE-4
  EventRing by_count("e", {.events = 3});
  for (int i = 0; i < 5; ++i) by_count.Append(Topic::kNodes, "{}", At(i));
  EXPECT_EQ(EventsFrom(by_count, 2, kAll), "lost");
  EXPECT_THAT(EventsFrom(by_count, 3, kAll), ::testing::StartsWith("id: e-3\n"));
  EventRing by_size("e", {.bytes = 1000});
  for (int i = 0; i < 5; ++i) by_size.Append(Topic::kNodes, std::string(400, '1'), At(i));
  EXPECT_EQ(EventsFrom(by_size, 3, kAll), "lost");
  EXPECT_NE(EventsFrom(by_size, 4, kAll), "lost");
  by_size.Append(Topic::kNodes, std::string(4000, '1'), At(6));
  EXPECT_EQ(EventsFrom(by_size, 6, kAll).size(),
            4000 + std::string("id: e-6\nevent: nodes\ndata: \n\n").size());
}

TEST(EventRing, ALongAbsenceIsReadInParts) {
  EventRing ring("e", {.part_bytes = 100});
  for (int i = 0; i < 4; ++i) ring.Append(Topic::kNodes, std::string(30, '1'), At(0));
  EventRing::Part first = *ring.Read(1, kAll);
  EXPECT_EQ(first.next, 2u);
  EXPECT_EQ(ring.Read(first.next, kAll)->next, 3u);
}

// REQ-24
TEST(EventRing, AnEventAboutALeaseIsForThoseWhoMaySeeIt) {
  const Topics leases = *ReadTopics("leases");
  EventRing ring("e");
  ring.Append(Topic::kLeases, "\"own\"", At(0), {"ci", true});
  ring.Append(Topic::kLeases, "\"shown\"", At(0), {"ci", false});
  auto text = [&](const Viewer& viewer) { return *ring.Read(1, leases, viewer)->text; };
  EXPECT_EQ(text({"ci"}), "id: e-1\nevent: leases\ndata: \"own\"\n\n");
  EXPECT_EQ(text({"ci", true}), text({"ci"})) << "once, although it may see all";
  EXPECT_EQ(text({"ops", true}), "id: e-2\nevent: leases\ndata: \"shown\"\n\n");
  EXPECT_EQ(text({"other"}), "");
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(ring.Read(1, leases, {"other"})->next, ring.end());
}

TEST(EventRing, IdsArePositions) {  // PAGE-2
  EventRing ring("e", {.events = 2});
  EXPECT_EQ(ring.After("e-0"), 1u) << "nothing has happened yet";
  for (int i = 0; i < 4; ++i) ring.Append(Topic::kNodes, "{}", At(i));
  EXPECT_EQ(ring.After("e-4"), 5u);
  EXPECT_EQ(ring.After("e-2"), 3u);
  for (const char* lost : {"e-1", "e-5", "f-4", "e", "e-", "e-4x", "", "e--1", "e-99999999999999999999"})
    EXPECT_EQ(ring.After(lost), std::nullopt) << lost;
  EXPECT_EQ(ring.Since(At(3)), 4u);
  EXPECT_EQ(ring.Since(At(9)), ring.end());
  ring.Clear();
  EXPECT_EQ(ring.After("e-4"), std::nullopt) << "what happened meanwhile is not known";
  EXPECT_EQ(EventsFrom(ring, 5, kAll), "lost");
}

TEST(Topics, NamesChooseThem) {
  EXPECT_EQ(kAll.count(), std::size(kTopicNames) - 1);
  EXPECT_FALSE(Contains(kAll, Topic::kLeases)) << "it has to be named";
  EXPECT_TRUE(Contains(kNodesOnly, Topic::kNodes));
  EXPECT_EQ(ReadTopics("nodes,requests")->count(), 2u);
  EXPECT_THAT(ReadTopics("nodes,colours").error().message(), ::testing::HasSubstr("not colours."));
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PublishedTest : public ::testing::Test {
 protected:
  std::vector<std::string> Seen() { return std::exchange(seen_, {}); }

  std::vector<std::string> seen_;
  Published::See see_ = [this](const std::string& key, const std::string* json) {
    seen_.push_back(key + (json != nullptr ? "=" + *json : " is gone"));
  };
  Published published_;
};

TEST_F(PublishedTest, OnlyDifferencesAreShown) {
  published_.Replace({{"a", "1"}, {"b", "1"}, {"c", "1"}}, see_);
  EXPECT_THAT(Seen(), ElementsAre("a=1", "b=1", "c=1"));
  published_.Replace({{"a", "1"}, {"b", "2"}, {"d", "1"}}, see_);
  EXPECT_THAT(Seen(), ElementsAre("c is gone", "b=2", "d=1"));
  published_.Replace({{"a", "1"}, {"b", "2"}, {"d", "1"}}, see_);
  EXPECT_THAT(Seen(), IsEmpty());
}

TEST_F(PublishedTest, SingleEntries) {
  published_.Set("a", "1", see_);
  published_.Set("a", "1", see_);
  published_.Set("a", "2", see_);
  published_.Set("a", std::nullopt, see_);
  published_.Set("a", std::nullopt, see_);
  EXPECT_THAT(Seen(), ElementsAre("a=1", "a=2", "a is gone"));
}

const NodeId kNode("0000000012");
const RequestId kRequest("200-0000000001");
const WallTime kNow = FromSeconds(1'700'000'000);

Node NodeIn(NodeState state) {
  Node node;
  node.state = state;
  node.provider = ProviderName("cloud");
  node.type = {LabelName("small")};
  node.allocated_to = kRequest;
  return node;
}

std::string Becomes(NodeState before, NodeState after) {
  Node old = NodeIn(before);
  Node now = NodeIn(after);
  return TextOfChange(kNode, &old, &now);
}

// PAGE-5
TEST(ChangeText, Nodes) {
  Node building = NodeIn(NodeState::kBuilding);
  EXPECT_EQ(TextOfChange(kNode, nullptr, &building),
            "Node 0000000012 (small) is being launched in cloud for request 200-0000000001.");
  EXPECT_EQ(Becomes(NodeState::kBuilding, NodeState::kReady),
            "Node 0000000012 (small) in cloud is ready for request 200-0000000001.");
  EXPECT_EQ(Becomes(NodeState::kReady, NodeState::kInUse),
            "Node 0000000012 is in use for request 200-0000000001.");
  EXPECT_EQ(Becomes(NodeState::kInUse, NodeState::kUsed), "Node 0000000012 was given back.");
  EXPECT_EQ(Becomes(NodeState::kBuilding, NodeState::kFailed),
            "The launch of node 0000000012 in cloud failed.");
  EXPECT_EQ(Becomes(NodeState::kReady, NodeState::kReady), "");
  EXPECT_EQ(TextOfChange(kNode, &building, nullptr), "Node 0000000012 is gone.");
}

TEST(ChangeText, HeldAndAllocatedNodes) {
  Node held = NodeIn(NodeState::kHold);
  held.hold_job = "unit";
  held.comment = "see the log";
  EXPECT_EQ(TextOfChange(kNode, nullptr, &held), "Node 0000000012 is held for job unit: see the log.");
  Node free = NodeIn(NodeState::kReady);
  free.allocated_to = RequestId();
  Node allocated = NodeIn(NodeState::kReady);
  EXPECT_THAT(TextOfChange(kNode, &free, &allocated), ::testing::HasSubstr("for request 200-0000000001"));
  EXPECT_EQ(TextOfChange(kNode, &allocated, &free), "");
  held.comment = std::string(10'000, 'x');
  EXPECT_LT(TextOfChange(kNode, nullptr, &held).size(), 500u);
}

// PAGE-5
TEST(ChangeText, ShortStock) {
  const LabelName label("small");
  ShortStock first{kNow, "cloud main: missing 2 cores"}, later{kNow, "cloud main: missing 4.5 cores"},
      other{kNow, "cloud main: no flavor"};
  EXPECT_EQ(TextOfChange(label, nullptr, &first),
            "Label small is short of min-ready nodes: cloud main: missing 2 cores.");
  EXPECT_EQ(TextOfChange(label, &first, &later), "") << "the same cause";
  EXPECT_EQ(TextOfChange(label, &later, &other),
            "Label small is short of min-ready nodes: cloud main: no flavor.");
  EXPECT_EQ(TextOfChange(label, &other, nullptr), "Label small is not short of min-ready nodes any more.");
  NodeRequest request;
  request.SetState(RequestState::kRequested, kNow);
  request.requestor = std::string(kMinReadyRequestor);
  EXPECT_EQ(TextOfChange(kRequest, nullptr, &request, Duration()), "");
}

TEST(ChangeText, Requests) {
  NodeRequest request;
  request.SetState(RequestState::kRequested, kNow);
  request.created_time = kNow;
  request.node_types = {LabelName("small"), LabelName("large"), LabelName("small")};
  request.requestor = "zuul";
  EXPECT_EQ(TextOfChange(kRequest, nullptr, &request, Duration(0)),
            "Request 200-0000000001 by zuul asks for large, 2 × small.");
  NodeRequest fulfilled = request;
  fulfilled.state = RequestState::kFulfilled;
  fulfilled.nodes = {kNode};
  EXPECT_EQ(TextOfChange(kRequest, &request, &fulfilled, std::chrono::milliseconds(2500)),
            "Request 200-0000000001 is fulfilled after 2.5 s with 0000000012.");
  NodeRequest failed = request;
  failed.state = RequestState::kFailed;
  AddDeclineReason(failed, "cloud main: no such label");
  EXPECT_EQ(TextOfChange(kRequest, &request, &failed, Duration(0)),
            "Request 200-0000000001 failed: cloud main: no such label.");
  EXPECT_EQ(TextOfChange(kRequest, &request, nullptr, Duration(0)), "Request 200-0000000001 was withdrawn.");
  EXPECT_EQ(TextOfChange(kRequest, &fulfilled, nullptr, Duration(0)), "");
}

TEST(ChangeText, Images) {
  store::BuildKey key{ImageName("deb"), BuildId("b1")};
  ImageBuild build;
  build.state = ImageState::kBuilding;
  EXPECT_EQ(TextOfChange(key, nullptr, &build), "Build deb-b1 has begun.");
  ImageBuild failed = build;
  failed.state = ImageState::kFailed;
  EXPECT_EQ(TextOfChange(key, &build, &failed), "Build deb-b1 failed.");
  ImageUpload upload;
  upload.state = ImageState::kReady;
  EXPECT_EQ(TextOfChange(store::UploadKey{key, ProviderName("cloud"), UploadId("1")}, nullptr, &upload),
            "The upload of deb-b1 to cloud is ready.");
}

TEST(ChangeText, ProvidersAndComponents) {
  ProviderReport up{ProviderState::kUp, kNow, "", {}};
  ProviderReport failing{ProviderState::kFailing, kNow, "no route", {}};
  ProviderName cloud("cloud");
  EXPECT_EQ(TextOfChange("np01", cloud, nullptr, &up), "The launcher on np01 can use provider cloud.");
  EXPECT_EQ(TextOfChange("np01", cloud, &up, &failing),
            "The launcher on np01 cannot use provider cloud: no route.");
  EXPECT_EQ(TextOfChange("np01", cloud, &failing, &failing), "");
  EXPECT_EQ(TextOfChange("np01", cloud, &up, nullptr),
            "The launcher on np01 no longer serves provider cloud.");
  Component builder;
  builder.kind = ComponentKind::kBuilder;
  builder.hostname = "nb01";
  EXPECT_EQ(TextOfChange(nullptr, &builder), "The builder on nb01 has registered.");
  EXPECT_EQ(TextOfChange(&builder, nullptr), "The builder on nb01 has left.");
  EXPECT_EQ(TextOfChange(&builder, &builder), "");
}

// The stream of a client's leases.

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
