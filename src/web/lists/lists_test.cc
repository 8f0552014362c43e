#include "web/lists/lists.h"

#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <set>
#include <utility>

#include "async/testing/run_ready.h"
#include "launcher/launcher_fixture_for_test.h"
#include "store/whole_tree.h"
#include "web/lists/row_stream.h"
#include "web/site_for_test.h"

namespace nodepool::web {

namespace {

namespace json = boost::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kJson = "application/json";
constexpr const char* kText = "text/plain";

class ListsTest : public launcher::LauncherTest {
 protected:
  // Lists of more nodes than `kept` are streamed.
  void StartSite(std::size_t kept = 1000) {
    running_ = &StartLauncher();
    MakeLists(kept);
  }
  void MakeLists(std::size_t kept) {
    auto recent = std::make_shared<RecentAnswers>(time_.loop());
    router_.emplace(ListEndpoints(time_.loop(), *running_->launcher, recent, kept));
  }
  NodeId AddHeld(const std::string& comment = "") {
    NodeId id = AddNode(NodeState::kHold, [&](Node& node) { node.comment = comment; });
    EXPECT_TRUE(Await([&] { return running_->launcher->records().nodes.Find(id) != nullptr; }));
    return id;
  }
  void Delete(NodeId id) {
    time_.Run(store::EraseNode(*client_store_, id, time_.loop().Now()));
    EXPECT_TRUE(Await([&] { return running_->launcher->records().nodes.Find(id) == nullptr; }));
  }

  Response Ask(const std::string& target, const char* type = kJson, const std::string& coding = "") {
    net::HttpRequest request;
    request.headers["accept"] = type;
    if (!coding.empty()) request.headers["accept-encoding"] = coding;
    EXPECT_TRUE(net::ParseTarget(target, request));
    return time_.Run(router_->Answer(std::move(request)));
  }
  std::string Rest(Response& response) {
    std::string text;
    while (auto piece = time_.Run(response.stream->Next())) text += *piece;
    return text;
  }
  static std::vector<std::string> IdsIn(const std::string& text) {
    std::vector<std::string> ids;
    json::value list = json::parse(text);
    for (const json::value& entry : list.as_array()) ids.emplace_back(entry.at("id").as_string());
    return ids;
  }
  std::vector<std::string> Ids(const std::string& target) { return IdsIn(Ask(target).whole_body()); }

  Running* running_ = nullptr;
  std::optional<Router> router_;
};

// operations.16.28
TEST_F(ListsTest, APageHasSoManyEntriesAfterAnother) {
  StartSite();
  std::vector<std::string> all;
  for (int i = 0; i < 5; ++i) all.push_back(AddHeld().value);
  EXPECT_THAT(Ids("/node-list?limit=2"), ElementsAre(all[0], all[1]));
  EXPECT_THAT(Ids("/node-list?limit=2&after=" + all[1]), ElementsAre(all[2], all[3]));
  EXPECT_THAT(Ids("/node-list?after=" + all[3]), ElementsAre(all[4]));
  EXPECT_THAT(Ids("/node-list?after=" + all[4]), IsEmpty());
  EXPECT_THAT(Ids("/node-list?limit=0"), IsEmpty());
  EXPECT_EQ(Ids("/node-list?limit=&after="), all);
  EXPECT_THAT(Ids("/node-list?limit=2&node_id=" + all[4]), ElementsAre(all[4]));
  std::string table = Ask("/node-list?limit=1&fields=id&after=" + all[2], kText).whole_body();
  EXPECT_EQ(table, "+------------+\n| ID         |\n+------------+\n| " + all[3] + " |\n+------------+");
  for (const char* wrong : {"x", "-1", "1x", "99999999999999999999"}) {
    EXPECT_EQ(Ask(std::string("/node-list?limit=") + wrong).status, 400) << wrong;
    EXPECT_EQ(Ask(std::string("/label-list?limit=") + wrong).status, 200) << "it has no pages";
  }
}

// operations.16.28
TEST_F(ListsTest, RequestsHavePagesToo) {
  StartSite();
  std::vector<std::string> all;
  for (int i = 0; i < 3; ++i) all.push_back(Request({"rare"}).value);
  ASSERT_TRUE(Await([&] { return running_->launcher->records().requests.all().size() == 3; }));
  EXPECT_THAT(Ids("/request-list?limit=1&after=" + all[0]), ElementsAre(all[1]));
  EXPECT_EQ(Ask("/request-list?limit=x").status, 400);
}

// HTTP-6
TEST_F(ListsTest, CompressedForClientsThatPreferIt) {
  StartSite();
  for (int i = 0; i < 20; ++i) AddHeld("as before");
  for (const char* type : {kJson, kText}) {
    std::string plain = Ask("/node-list", type).whole_body();
    Response response = Ask("/node-list", type, "gzip, deflate");
    EXPECT_THAT(response.headers, Contains(Pair("Content-Encoding", "gzip")));
    EXPECT_LT(response.whole_body().size(), plain.size() / 5);
    EXPECT_EQ(Gunzipped(response.whole_body()), plain);
  }
}

// operations.16.29
TEST_F(ListsTest, ALargeListIsTheSameAsASmallOne) {
  StartSite();
  for (const char* comment : {"a", "two\nlines", "a long comment", "b", "c"}) AddHeld(comment);
  for (const char* target : {"/node-list", "/node-list?fields=id,comment", "/node-list?fields=none"}) {
    for (const char* type : {kJson, kText}) {
      std::string kept = Ask(target, type).whole_body();
      MakeLists(4);
      Response streamed = Ask(target, type);
      ASSERT_TRUE(streamed.stream);
      EXPECT_THAT(streamed.headers, Contains(Key("Last-Modified")));
      EXPECT_THAT(streamed.headers, Not(Contains(Key("Content-Encoding"))));
      EXPECT_EQ(Rest(streamed), kept) << target << " " << type;
      Response compressed = Ask(target, type, "gzip");
      EXPECT_THAT(compressed.headers, Contains(Pair("Content-Encoding", "gzip")));
      EXPECT_EQ(Gunzipped(Rest(compressed)), kept) << target << " " << type;
      MakeLists(1000);
    }
  }
  MakeLists(4);
  EXPECT_FALSE(Ask("/node-list?limit=9").stream) << "a page is made at once";
  EXPECT_FALSE(Ask("/node-list?node_id=0000000001").stream);
  MakeLists(5);
  EXPECT_FALSE(Ask("/node-list").stream);
}

// operations.16.29
TEST_F(ListsTest, NodesComeAndGoWhileALargeListIsSent) {
  StartSite(4);
  std::vector<NodeId> nodes;
  for (int i = 0; i < 6; ++i) nodes.push_back(AddHeld(std::string(40'000, 'x')));
  Response response = Ask("/node-list");
  std::string text = *time_.Run(response.stream->Next());
  EXPECT_THAT(text, Not(HasSubstr(nodes[3].value))) << "it comes in pieces";
  Delete(nodes[0]);
  Delete(nodes[3]);
  NodeId late = AddHeld();
  text += Rest(response);
  EXPECT_THAT(IdsIn(text), ElementsAre(nodes[0].value, nodes[1].value, nodes[2].value, nodes[4].value,
                                       nodes[5].value, late.value));
}

// operations.16.29
TEST_F(ListsTest, ATableKeepsTheWidthsThatItHadAtFirst) {
  StartSite(4);
  for (int i = 0; i < 5; ++i) AddHeld("short");
  Response response = Ask("/node-list?fields=id,comment", kText);
  NodeId late = AddHeld("a comment that is longer");
  EXPECT_THAT(Rest(response), HasSubstr("| " + late.value + " | a comment that is longer |\n"));
}

// operations.16.29
TEST_F(ListsTest, ALargeListBreaksOffWhenZooKeeperIsAway) {
  StartSite(2);
  for (int i = 0; i < 3; ++i) AddHeld();
  Response response = Ask("/node-list");
  zk_.Disconnect(*running_->client);
  Outcome<std::shared_ptr<const std::string>> piece = time_.Run(Attempt(response.stream->Next()));
  EXPECT_TRUE(FailedWith(piece, Verdict::kRetry)) << "the client must not take a part for the whole";
  zk_.Reconnect(*running_->client);
  ASSERT_TRUE(Await([&] { return running_->launcher->records().synced(); }));
}

// operations.16.29
TEST_F(ListsTest, SoManyLargeListsAtATime) {
  StartSite(1);
  for (int i = 0; i < 2; ++i) AddHeld();
  std::vector<Response> open;
  for (std::size_t i = 0; i < RowStreams::kMax; ++i) open.push_back(Ask("/node-list"));
  EXPECT_TRUE(open.back().stream);
  EXPECT_EQ(Ask("/node-list").status, 503);
  EXPECT_EQ(Ask("/node-list?limit=1").status, 200);
  open.pop_back();
  EXPECT_TRUE(Ask("/node-list").stream);
}

// Rows "id comment, locked, age", and which of them were made for the last text.
class NodeRowsTest : public launcher::LauncherTest {
 protected:
  void SetUp() override {
    LauncherTest::SetUp();
    nodes_ = &StartLauncher().launcher->records().nodes;
    for (const char* comment : {"a", "b", "c"}) {
      ids_.push_back(AddNode(NodeState::kHold, [&](Node& node) { node.comment = comment; }));
    }
    ASSERT_TRUE(Await([&] { return nodes_->all().size() == 3; }));
    start_ = time_.loop().Now();
  }

  std::string Show(NodeRows::Limits limits = {}) {
    made_.clear();
    std::string text;
    auto append = [&](const listing::AgedText& row) {
      if (!text.empty()) text += ", ";
      row.AppendTo(text, time_.loop().Now());
    };
    is_complete_ = time_.Run(rows_.Update(*nodes_, limits, pace_));
    time_.Run(rows_.ForEach(append, pace_));
    return text;
  }

  const store::NodeCache* nodes_ = nullptr;
  std::vector<NodeId> ids_;
  WallTime start_;
  std::vector<std::string> made_;
  bool is_complete_ = false;
  Pace pace_{time_.loop(), Pace::kEachStep};
  NodeRows rows_{[this](listing::AgedText& row, const store::StoredNode& node) {
    made_.push_back(*node.record.comment);
    row.text() += *node.record.comment + (node.is_locked() ? " locked " : " ");
    row.AddAge(start_, listing::AgedText::Style::kSeconds);
    row.text() += 's';
  }};
};

TEST_F(NodeRowsTest, AgesAdvanceInCachedRows) {
  EXPECT_EQ(Show(), "a 0s, b 0s, c 0s");
  EXPECT_THAT(made_, ElementsAre("a", "b", "c"));
  time_.Advance(std::chrono::seconds(61));
  EXPECT_EQ(Show(), "a 61s, b 61s, c 61s");
  EXPECT_THAT(made_, IsEmpty());
}

TEST_F(NodeRowsTest, OnlyTheRowOfAChangedNodeIsMadeAgain) {
  Show();
  ChangeNode(ids_[1], [](Node& node) { node.comment = "d"; });
  ASSERT_TRUE(Await([&] { return nodes_->Find(ids_[1])->record.comment == "d"; }));
  start_ = time_.loop().Now();
  EXPECT_NE(Show().find(", d 0s, "), std::string::npos);
  EXPECT_THAT(made_, ElementsAre("d"));

  auto locked = time_.Run(client_store_->nodes.TryLock(ids_[2]));
  ASSERT_TRUE(Await([&] { return nodes_->Find(ids_[2])->is_locked(); }));
  EXPECT_NE(Show().find("c locked "), std::string::npos);
  EXPECT_THAT(made_, ElementsAre("c"));
  time_.Run(locked->Unlock());
  ASSERT_TRUE(Await([&] { return !nodes_->Find(ids_[2])->is_locked(); }));
  EXPECT_EQ(Show().find("locked"), std::string::npos);
}

TEST_F(NodeRowsTest, NodesComeAndGo) {
  Show();
  time_.Run(store::EraseNode(*client_store_, ids_[0], start_));
  NodeId added = AddNode(NodeState::kHold, [](Node& node) { node.comment = "e"; });
  ASSERT_TRUE(Await([&] { return nodes_->Find(ids_[0]) == nullptr && nodes_->Find(added) != nullptr; }));
  start_ = time_.loop().Now();
  std::string shown = Show();
  EXPECT_EQ(shown.front(), 'b');
  EXPECT_TRUE(shown.ends_with(", e 0s")) << shown;
  EXPECT_THAT(made_, ElementsAre("e"));
}

TEST_F(NodeRowsTest, NoMoreThanTheLimits) {
  EXPECT_EQ(Show({.rows = 2}), "a 0s, b 0s");
  EXPECT_FALSE(is_complete_);
  EXPECT_EQ(Show({.rows = 0}), "");
  EXPECT_EQ(Show({.bytes = 3}), "a 0s, b 0s");
  EXPECT_FALSE(is_complete_);
  EXPECT_EQ(Show({.rows = 3}), "a 0s, b 0s, c 0s");
  EXPECT_TRUE(is_complete_);
}

// The update begins when the node's removal has gone so many steps.
TEST_F(NodeRowsTest, ANodeGoesWhileRowsAreMade) {
  auto& context = time_.loop().context();
  std::set<std::size_t> sizes;
  for (int steps = 0; steps < 60; ++steps) {
    NodeId gone = AddNode(NodeState::kHold, [](Node& node) { node.comment = "d"; });
    ASSERT_TRUE(Await([&] { return nodes_->Find(gone) != nullptr; }));
    boost::asio::co_spawn(context, store::EraseNode(*client_store_, gone, start_), boost::asio::detached);
    for (int i = 0; i < steps; ++i) context.poll_one();
    boost::asio::co_spawn(context, rows_.Update(*nodes_, {}, pace_), boost::asio::detached);
    context.poll();
    ASSERT_TRUE(Await([&] { return nodes_->Find(gone) == nullptr; }));
    std::vector<std::string> texts;
    auto see = [&](const listing::AgedText& row) { row.AppendTo(texts.emplace_back(), start_); };
    time_.Run(rows_.ForEach(see, pace_));
    EXPECT_THAT(texts, IsSupersetOf({"a 0s", "b 0s", "c 0s"}));
    sizes.insert(texts.size());
  }
  EXPECT_THAT(sizes, ElementsAre(3, 4)) << "it went before its turn and after it";
}

TEST_F(NodeRowsTest, ACancelledUpdateLeavesNoHalfRows) {
  Show();
  boost::asio::cancellation_signal stop;
  bool is_cancelled = false;
  boost::asio::co_spawn(time_.loop().context(), rows_.Update(*nodes_, {}, pace_),
                        boost::asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr error, bool) {
                          is_cancelled = error != nullptr;
                        }));
  ASSERT_EQ(time_.loop().context().poll_one(), 1u);
  stop.emit(boost::asio::cancellation_type::all);
  testing::RunReady(time_.loop());
  EXPECT_TRUE(is_cancelled);
  EXPECT_EQ(Show(), "a 0s, b 0s, c 0s");
}

}  // namespace

}  // namespace nodepool::web
