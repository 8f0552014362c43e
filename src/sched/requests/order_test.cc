#include "sched/requests/order.h"

#include <gtest/gtest.h>

namespace nodepool::sched {
namespace {

TEST(ServiceOrderTest, PrecedenceAsTextThenRelativePriorityThenAge) {
  NodeRequest request;
  auto order = [&](std::string id, double relative_priority) {
    request.relative_priority = relative_priority;
    return *OrderOf(RequestId(std::move(id)), request);
  };
  EXPECT_LT(order("100-0000000009", 50), order("200-0000000001", 0));
  EXPECT_LT(order("1000-0000000009", 0), order("200-0000000001", 0)) << "as text, not as a number";
  EXPECT_LT(order("200-0000000009", 1), order("200-0000000001", 2));
  EXPECT_LT(order("200-0000000001", 1), order("200-0000000002", 1));
  EXPECT_LT(order("200-0000000002", 1), order("200-0000000001", 1.5));
  EXPECT_LT(order("200-0000000002", 1.5), order("200-0000000001", 2));
}

TEST(ServiceOrderTest, OtherIdsHaveNoPlace) {
  EXPECT_FALSE(OrderOf(RequestId("nodash"), {}));
  EXPECT_FALSE(OrderOf(RequestId("a-b-c"), {}));
}

}  // namespace
}  // namespace nodepool::sched
