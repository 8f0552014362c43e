#include "sched/requests/order.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

// coordination.md 3.2
TEST(ServiceOrderTest, RequestsBeyond31BitsFollow) {
  auto order = [](std::string id) { return *OrderOf(RequestId(std::move(id)), {}); };
  std::vector<std::string> by_age{"0000000009", "2147483647", "-2147483648", "-2147483647",
                                  "-000000001", "4294967296", "10000000000", "word"};
  for (std::size_t i = 1; i < by_age.size(); ++i) {
    EXPECT_LT(order("200-" + by_age[i - 1]), order("200-" + by_age[i])) << by_age[i];
  }
}

TEST(ServiceOrderTest, OtherIdsHaveNoPlace) {
  EXPECT_FALSE(OrderOf(RequestId("nodash"), {}));
  EXPECT_FALSE(OrderOf(RequestId("a-b-c"), {}));
}

}  // namespace
}  // namespace nodepool::sched
