#include "web/lists/node_rows.h"

#include <gmock/gmock.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <set>
#include <utility>

#include "launcher/launcher_fixture_for_test.h"
#include "store/erase.h"

namespace nodepool::web {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

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
  time_.loop().RunReady();
  EXPECT_TRUE(is_cancelled);
  EXPECT_EQ(Show(), "a 0s, b 0s, c 0s");
}

}  // namespace
}  // namespace nodepool::web
