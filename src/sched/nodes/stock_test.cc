#include "sched/nodes/stock.h"

#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

using namespace std::chrono_literals;

const SteadyTime kMoment{1h};
constexpr HoldOff kPauses{.always = 5s, .unchanged = 60s};

int MissingOf(const Stock& stock) { return DecideStock(stock, kPauses, kMoment).missing; }

// launcher.md 14
TEST(StockTest, NodesAndRequestsCount) {
  EXPECT_EQ(MissingOf({.min_ready = 3}), 3);
  EXPECT_EQ(MissingOf({.min_ready = 3, .free = 1}), 2);
  EXPECT_EQ(MissingOf({.min_ready = 3, .free = 1, .under_way = 1}), 1);
  EXPECT_EQ(MissingOf({.min_ready = 3, .under_way = 3}), 0);
  EXPECT_EQ(MissingOf({.min_ready = 3, .free = 3, .under_way = 2}), 0) << "more than enough";
  EXPECT_FALSE(DecideStock({.min_ready = 3}, kPauses, kMoment).due_at);
}

// D-21
TEST(StockTest, WithoutMinReadyNothingIsKept) {
  for (int none : {0, -1}) {
    StockDecision decision = DecideStock({.min_ready = none, .failed_at = kMoment}, kPauses, kMoment);
    EXPECT_EQ(decision.missing, 0);
    EXPECT_FALSE(decision.due_at);
  }
}

// D-27
TEST(StockTest, AFailureHoldsOffUntilCapacityChanges) {
  Stock stock{.min_ready = 1, .failed_at = kMoment};
  auto decide = [&](Duration later) { return DecideStock(stock, kPauses, kMoment + later); };
  for (SteadyTime changed_before : {SteadyTime(), kMoment}) {
    stock.capacity_changed_at = changed_before;
    EXPECT_EQ(decide(59s).missing, 0);
    EXPECT_EQ(decide(59s).due_at, kMoment + 60s);
    EXPECT_EQ(decide(60s).missing, 1);
    EXPECT_FALSE(decide(60s).due_at);
  }
  stock.capacity_changed_at = kMoment + 1s;
  EXPECT_EQ(decide(4s).missing, 0);
  EXPECT_EQ(decide(4s).due_at, kMoment + 5s);
  EXPECT_EQ(decide(5s).missing, 1);
}

}  // namespace
}  // namespace nodepool::sched
