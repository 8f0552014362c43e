#include "web/body_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace nodepool::web {
namespace {

struct Part {
  std::optional<std::string> tenant;
};

struct Order {
  NodeId node;
  Part part;
  std::optional<int> seconds;
  bool is_drained = false;
};

const BodyTable<Order>& Keys() {
  using Table = BodyTable<Order>;
  static const Table table({
      Table::OfText("node", "which", &Order::node),
      Table::OfText(
          "tenant", "whose", [](Order& order) -> auto& { return order.part.tenant; }, 10)
          .Optional(),
      Table::OfWhole("seconds", 1, 60, "how long", &Order::seconds).Optional(),
      Table::OfFlag("drain", "with all", &Order::is_drained).Optional(),
  });
  return table;
}

Expected<Order> ReadOrder(const std::string& body) {
  Request request;
  request.headers["content-type"] = "application/json";
  request.body = body;
  return ReadBody<Order>([&](Order& order) { Keys().Take(request, order); });
}

TEST(BodyTableTest, PutsEachKeyWhereItBelongs) {
  Expected<Order> order = ReadOrder(R"({"node": "1", "tenant": "t", "seconds": 60, "drain": true})");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->node, NodeId("1"));
  EXPECT_EQ(order->part.tenant, "t");
  EXPECT_EQ(order->seconds, 60);
  EXPECT_TRUE(order->is_drained);
  EXPECT_EQ(ReadOrder(R"({"node": "1"})")->seconds, std::nullopt);
}

TEST(BodyTableTest, RefusesWhatTheTableDoesNotPermit) {
  EXPECT_EQ(ReadOrder("{}").error().message(), "node is required.");
  EXPECT_EQ(ReadOrder("").error().verdict(), Verdict::kInvalid);
  EXPECT_EQ(ReadOrder(R"({"node": "1", "seconds": 61})").error().message(),
            "seconds is a whole number from 1 to 60.");
  EXPECT_EQ(ReadOrder(R"({"node": "1", "tenant": "12345678901"})").error().message(),
            "tenant is a text of 1 to 10 bytes.");
  EXPECT_EQ(ReadOrder(R"({"node": "1", "hours": 1})").error().message(), "There is no key \"hours\" here.");
}

TEST(BodyTableTest, DocumentsStateTheBounds) {
  boost::json::object schema = SchemaOf(Keys().type());
  EXPECT_EQ(boost::json::serialize(schema["required"]), R"(["node"])");
  EXPECT_EQ(boost::json::serialize(schema["properties"].at("seconds")),
            R"({"type":"integer","minimum":1,"maximum":60,"description":"how long"})");
  EXPECT_EQ(DescriptionOf(Keys().type().fields[2].type), "whole number from 1 to 60");
  EXPECT_EQ(DescriptionOf(Keys().type().fields[1].type), "text of at most 10 bytes");
}

}  // namespace
}  // namespace nodepool::web
