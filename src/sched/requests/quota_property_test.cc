#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/resources.h"
#include "sched/requests/order.h"

namespace nodepool::sched {
namespace {

Resources AnyResources() {
  Resources resources;
  for (const char* name : {"instances", "cores", "ram"}) {
    if (*rc::gen::arbitrary<bool>()) resources[name] = *rc::gen::inRange(0, 20);
  }
  return resources;
}

TEST(QuotaPropertyTest, SubtractUndoesAdd) {
  EXPECT_TRUE(rc::check([] {
    Resources amount = AnyResources(), more = AnyResources(), sum = amount;
    Add(sum, more);
    Subtract(sum, more);
    for (const auto& [resource, value] : sum)
      RC_ASSERT(value == (amount.contains(resource) ? amount[resource] : 0));
  }));
}

// launcher.md 19.1: absent in an amount is nothing, absent in a limit is no limit.
TEST(QuotaPropertyTest, ShortageIsWhatWouldHaveToBeAdded) {
  EXPECT_TRUE(rc::check([] {
    Resources limit = AnyResources(), used = AnyResources(), need = AnyResources();
    Resources shortage = Shortage(limit, used, need);
    for (const auto& [resource, missing] : shortage) {
      RC_ASSERT(missing > 0);
      RC_ASSERT(limit[resource] + missing == used[resource] + need[resource]);
    }
    Resources raised = limit;
    Add(raised, shortage);
    RC_ASSERT(Fits(raised, used, need));
    RC_ASSERT(Fits({}, used, need));
    RC_ASSERT(Fits(limit, used, {}));
  }));
}

TEST(QuotaPropertyTest, NeedingMoreNeverFitsBetter) {
  EXPECT_TRUE(rc::check([] {
    Resources limit = AnyResources(), used = AnyResources(), need = AnyResources(), more = AnyResources();
    Resources both = need;
    Add(both, more);
    RC_ASSERT((Fits(limit, used, need) || !Fits(limit, used, both)));
  }));
}

// launcher.md 8, step 5, BB-03
TEST(OrderPropertyTest, PrecedenceThenPriorityThenAge) {
  EXPECT_TRUE(rc::check([] {
    auto draw = [] {
      NodeRequest request;
      request.relative_priority = *rc::gen::inRange(-2, 12);
      std::string sequence = fmt::format("{:010}", *rc::gen::inRange(0, 1000));
      RequestId id(*rc::gen::element<std::string>("100", "200", "900") + "-" + sequence);
      return *OrderOf(id, request);
    };
    ServiceOrder a = draw(), b = draw();
    bool is_before = a.precedence != b.precedence                 ? a.precedence < b.precedence
                     : a.relative_priority != b.relative_priority ? a.relative_priority < b.relative_priority
                                                                  : a.sequence < b.sequence;
    RC_ASSERT((a < b) == is_before);
  }));
}

}  // namespace
}  // namespace nodepool::sched
