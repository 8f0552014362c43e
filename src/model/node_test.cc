#include "model/node.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/ids.h"
#include "model/json.h"

namespace nodepool {

namespace {

namespace json = boost::json;

TEST(ResourcesTest, AbsentLimitIsUnlimitedAbsentAmountIsZero) {
  EXPECT_TRUE(Fits({}, {{"cores", 1000}}, {{"cores", 1}}));
  EXPECT_TRUE(Fits({{"cores", 0}}, {}, {{"ram", 5}}));
  EXPECT_EQ(Shortage({{"cores", 8}, {"ram", 8192}}, {}, {{"cores", 10}, {"instances", 1}, {"ram", 8192}}),
            (Resources{{"cores", 2}}));
}

TEST(ResourcesTest, InfiniteLimitAlwaysFits) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Fits({{"cores", infinity}}, {{"cores", 1e18}}, {{"cores", 1}}));
}

TEST(ResourcesTest, ALoweredLimitBlocksOnlyWhatTakesMore) {
  Resources over = {{"cores", 20}};
  EXPECT_TRUE(Fits({{"cores", 10}}, over, {{"instances", 1}}));
  EXPECT_FALSE(Fits({{"cores", 10}}, over, {{"cores", 1}}));
}

TEST(ResourcesTest, AddAndSubtract) {
  Resources sum = {{"cores", 2}};
  Add(sum, {{"cores", 2}, {"ram", 1}});
  EXPECT_EQ(sum, (Resources{{"cores", 4}, {"ram", 1}}));
  Subtract(sum, {{"cores", 1}});
  EXPECT_EQ(sum, (Resources{{"cores", 3}, {"ram", 1}}));
}

TEST(ResourcesTest, FractionsAreExact) {
  Resources used = {{"cores", 0.1}};
  Add(used, {{"cores", 0.1}});
  EXPECT_TRUE(Fits({{"cores", 0.3}}, used, {{"cores", 0.1}}));
  Add(used, {{"cores", 0.1}});
  EXPECT_EQ(used, (Resources{{"cores", 0.3}}));
  Subtract(used, {{"cores", 0.3}});
  EXPECT_EQ(used, (Resources{{"cores", 0}}));
}

TEST(ResourcesTest, UnlimitedLessUnlimitedIsUnlimited) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ExactSum(infinity, -infinity), infinity);
  EXPECT_EQ(ExactSum(infinity, -1), infinity);
  EXPECT_EQ(ExactSum(1, -infinity), -infinity);
}

TEST(ResourcesTest, SumsAreExact) {
  ResourceSum sum;
  Resources many = {{"cores", 0.1}, {"ram", 1e9}}, few = {{"cores", 0.2}};
  for (int i = 0; i < 100; ++i) sum.Add(many);
  sum.Add(few);
  for (int i = 0; i < 100; ++i) sum.Subtract(many);
  EXPECT_EQ(sum.total(), few);
  sum.Subtract(few);
  EXPECT_TRUE(sum.total().empty());
}

const WallTime kNodeNow = FromSeconds(1'800'000'000.25);

// A fulfilled node as the Python implementation writes it (coordination.md 4.4).
constexpr std::string_view kFulfilledNode =
    R"({"state": "ready", "state_time": 1726605930.2134566, "cloud": "c1", "provider": "c1-east", "pool": "main", )"
    R"("type": ["small"], "allocated_to": "200-0000004711", "az": "az1", "region": "east", )"
    R"("public_ipv4": "203.0.113.7", "private_ipv4": "10.0.0.7", "public_ipv6": null, "host_id": "h42", )"
    R"("interface_ip": "203.0.113.7", "connection_port": 22, "ssh_port": 22, )"
    R"("image_id": "/nodepool/images/deb12/builds/4f0e/providers/c1-east/images/0000000001", )"
    R"("launcher": "np01.example.org-PoolWorker.c1-east-main-9d1c", "created_time": 1726605881.02, )"
    R"("external_id": "i-17", "hostname": null, "comment": "caf\u00e9 \ud83d\ude00 \"q\" \u007f\n", )"
    R"("user_data": null, "hold_job": null, "host_keys": ["ssh-ed25519 AAAA"], "username": "zuul", )"
    R"("connection_type": "ssh", "shell_type": null, "hold_expiration": null, )"
    R"("resources": {"cores": 4, "instances": 1, "ram": 8192, "share": 0.1}, "slot": null, )"
    R"("attributes": {"executor-zone": "east"}, "python_path": "auto", "tenant_name": "demo", )"
    R"("driver_data": null, "requestor": "0f6c1c"})";

Node ParsedNode(std::string_view text) {
  Expected<Node> node = ParseNode(text, kNodeNow);
  EXPECT_TRUE(node.has_value()) << text << ": " << (node ? "" : node.error().message());
  return node.value_or(Node());
}

std::string NodeFault(std::string_view text) {
  Expected<Node> node = ParseNode(text, kNodeNow);
  EXPECT_FALSE(node.has_value()) << text;
  if (node) return "";
  EXPECT_EQ(node.error().verdict(), Verdict::kInvalid);
  return node.error().message();
}

TEST(Node, ReadsWhatPythonWrites) {
  Node node = ParsedNode(kFulfilledNode);
  EXPECT_EQ(node.state, NodeState::kReady);
  EXPECT_EQ(ToSeconds(node.state_time), 1726605930.2134566);
  EXPECT_EQ(node.provider, ProviderName("c1-east"));
  EXPECT_EQ(node.pool, PoolName("main"));
  EXPECT_EQ(node.type, std::vector{LabelName("small")});
  EXPECT_EQ(node.allocated_to, RequestId("200-0000004711"));
  EXPECT_EQ(node.public_ipv6, std::nullopt);
  EXPECT_EQ(node.comment, "caf\xc3\xa9 \xf0\x9f\x98\x80 \"q\" \x7f\n");
  EXPECT_EQ(node.host_keys, std::vector<std::string>{"ssh-ed25519 AAAA"});
  EXPECT_EQ(*node.resources, (Resources{{"cores", 4}, {"instances", 1}, {"ram", 8192}, {"share", 0.1}}));
  EXPECT_EQ(node.attributes, (json::object{{"executor-zone", "east"}}));
  EXPECT_EQ(node.foreign, Foreign());
  EXPECT_FALSE(node.is_free());
  EXPECT_TRUE(node.has_label(LabelName("small")));
  EXPECT_FALSE(node.has_label(LabelName("large")));
}

TEST(Node, WritesByteForByteWhatPythonWrites) {
  EXPECT_EQ(ToJson(ParsedNode(kFulfilledNode)), kFulfilledNode);
}

// coordination.17.36: all keys are written, even those that were missing.
TEST(Node, MissingKeysHaveDefaults) {
  Node node = ParsedNode("{}");
  EXPECT_EQ(node.state, std::nullopt);
  EXPECT_EQ(node.state_time, kNodeNow);
  EXPECT_TRUE(node.provider.empty());
  EXPECT_TRUE(node.type.empty());
  EXPECT_EQ(node.connection_port, 22);
  EXPECT_EQ(node.username, "zuul");
  EXPECT_EQ(node.created_time, std::nullopt);
  node.SetState(NodeState::kInit, kNodeNow);
  json::object written = *ParseJsonObject(ToJson(node));
  EXPECT_EQ(written.size(), 36u);
  EXPECT_TRUE(written["resources"].is_null());
  EXPECT_TRUE(written["allocated_to"].is_null());
  EXPECT_EQ(written["ssh_port"], 22);
}

TEST(Node, UsernameIsDefaultedOnlyWhenMissing) {
  EXPECT_EQ(ParsedNode(R"({"username": null})").username, std::nullopt);
}

// coordination.17.36
TEST(Node, PortIsWrittenTwice) {
  EXPECT_EQ(ParsedNode(R"({"ssh_port": 2022})").connection_port, 2022);
  EXPECT_EQ(ParsedNode(R"({"ssh_port": 1, "connection_port": 2})").connection_port, 2);
  json::object written =
      *ParseJsonObject(ToJson(ParsedNode(R"({"connection_port": {"token": "t"}, "ssh_port": 3})")));
  EXPECT_EQ(written["connection_port"], (json::object{{"token", "t"}}));
  EXPECT_EQ(written["ssh_port"], written["connection_port"]);
}

// coordination.17.37
TEST(Node, TypeMayBeABareText) {
  EXPECT_EQ(ParsedNode(R"({"type": "small"})").type, std::vector{LabelName("small")});
  EXPECT_TRUE(ParsedNode(R"({"type": ""})").type.empty());
  EXPECT_TRUE(ParsedNode(R"({"type": null})").type.empty());
  EXPECT_NE(ToJson(ParsedNode(R"({"type": "small"})")).find(R"("type": ["small"])"), std::string::npos);
}

// coordination.17.23, 17.24, coordination.md 4.4.
TEST(Node, HoldExpirationIsCoercedToAnInteger) {
  auto hold = [](std::string_view value) {
    return ParsedNode(fmt::format(R"({{"hold_expiration": {}}})", value)).hold_expiration;
  };
  EXPECT_EQ(hold("null"), std::nullopt);
  EXPECT_EQ(hold("3600"), 3600);
  EXPECT_EQ(hold("3600.9"), 3600);
  EXPECT_EQ(hold("-1"), -1);
  EXPECT_EQ(hold("\"1\""), 1);
  EXPECT_EQ(hold("\" +12 \""), 12);
  EXPECT_EQ(hold("\"1.5\""), 0);
  EXPECT_EQ(hold("\"x\""), 0);
  EXPECT_EQ(hold("\"\""), 0);
  EXPECT_EQ(hold("[1]"), 0);
  EXPECT_EQ(hold("{}"), 0);
  EXPECT_EQ(hold("true"), 1);
  EXPECT_EQ(hold("1e300"), 9'200'000'000'000'000'000);
  EXPECT_EQ(hold("1726605896000"), 1726605896000);  // Jenkins' milliseconds
}

TEST(Node, TimesMayBeIntegersAndAreRetainedExactly) {
  EXPECT_EQ(ToSeconds(ParsedNode(R"({"state": "ready", "state_time": 1726605896})").state_time),
            1726605896.0);
  EXPECT_EQ(ParsedNode(R"({"state_time": null})").state_time, kNodeNow);
  SeededRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    std::string time = fmt::format("{}", random.Between(1.0e9, 2.0e9));
    std::string written = ToJson(ParsedNode(fmt::format(R"({{"state_time": {}}})", time)));
    EXPECT_NE(written.find(fmt::format(R"("state_time": {},)", time)), std::string::npos) << time << written;
  }
}

// D-08, coordination.md 4.1: Python's tokens are read, but never written.
TEST(Node, APriceIsWrittenOnlyWhereThereIsOne) {
  Expected<Node> node = ParseNode(R"({"state": "ready", "hourly_price": 0.096})", kNodeNow);
  ASSERT_TRUE(node);
  EXPECT_EQ(node->hourly_price, 0.096);
  EXPECT_NE(ToJson(*node).find(R"("hourly_price": 0.096)"), std::string::npos);
  for (const char* odd : {"null", "-1", "NaN", "\"much\"", "[1]", "1e300"}) {
    node = ParseNode(fmt::format(R"({{"state": "ready", "hourly_price": {}}})", odd), kNodeNow);
    ASSERT_TRUE(node) << odd;
    EXPECT_EQ(node->hourly_price, std::nullopt) << odd;
    EXPECT_EQ(ToJson(*node).find("hourly_price"), std::string::npos) << odd;
  }
}

TEST(Node, NonFiniteNumbersReadAsAbsent) {
  Node node = ParsedNode(R"({"resources": {"cores": Infinity, "ram": NaN, "gpus": 1e999, "instances": 1},)"
                         R"( "user_data": ["Infinity \" NaN", -Infinity], "created_time": NaN})");
  EXPECT_EQ(*node.resources, (Resources{{"instances", 1}}));
  EXPECT_EQ(node.user_data.value(), (json::array{"Infinity \" NaN", nullptr}));
  EXPECT_EQ(node.created_time, std::nullopt);
  node.driver_data = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(ParseJsonObject(ToJson(node))->at("driver_data").is_null());
}

TEST(Node, FaultsNameTheKey) {
  EXPECT_EQ(NodeFault(R"({"state": "bogus"})"),
            R"("state" is "bogus", which is not a state of this kind of record)");
  EXPECT_EQ(NodeFault(R"({"state": null})"),
            R"("state" is null, which is not a state of this kind of record)");
  EXPECT_EQ(NodeFault(R"({"state": "pending"})"),
            R"("state" is "pending", which is not a state of this kind of record)");
  EXPECT_EQ(NodeFault(R"({"state_time": "x"})"), R"("state_time" is not a time in seconds or null)");
  EXPECT_EQ(NodeFault(R"({"type": [1]})"), R"("type" is not a list of texts)");
  EXPECT_EQ(NodeFault(R"({"type": {"a": 1}})"), R"("type" is not a list of texts)");
  EXPECT_EQ(NodeFault(R"({"allocated_to": 5})"), R"("allocated_to" is not a text or null)");
  EXPECT_EQ(NodeFault(R"({"az": []})"), R"("az" is not a text or null)");
  EXPECT_EQ(NodeFault(R"({"slot": "one"})"), R"("slot" is not a number or null)");
  for (std::string_view amount : {"-1", "1e10", "\"4\"", "[]"}) {
    EXPECT_EQ(NodeFault(fmt::format(R"({{"resources": {{"cores": {}}}}})", amount)),
              R"("resources" is not an object of amounts between 0 and 1e9)");
  }
}

// D-08: nothing from outside crashes, and no message quotes a record.
TEST(Node, GarbageIsAnError) {
  EXPECT_EQ(NodeFault("[]"), "not a JSON object");
  EXPECT_EQ(NodeFault("null"), "not a JSON object");
  for (std::string_view text :
       {"", " ", "{", "{}x", "{} {}", "\xff", "{\"a\": \"\xff\"}", "{\"a\": tru}", "nodes"}) {
    EXPECT_NE(NodeFault(text).find("not valid JSON at byte "), std::string::npos) << text;
  }
  EXPECT_NE(NodeFault(std::string(200, '[')).find("not valid JSON"), std::string::npos);
  EXPECT_EQ(NodeFault("{\"secret\": \"hunter2\", }").find("hunter2"), std::string::npos);
  EXPECT_EQ(NodeFault(std::string(kMaxRecordBytes + 1, ' ')),
            "the record has 1048577 bytes; at most 1048576 are accepted");
}

TEST(Node, ALargeRecordIsRetainedAsAWhole) {
  std::string big(kMaxRecordBytes - 2000, 'x');
  EXPECT_EQ(ParsedNode(fmt::format(R"({{"user_data": "{}"}})", big)).user_data, json::value(big));
}

json::value RandomJson(Random& random, int depth) {
  switch (random.Below(depth > 3 ? 6 : 8)) {
    case 0:
      return nullptr;
    case 1:
      return random.Below(2) == 0;
    case 2:
      return static_cast<std::int64_t>(random.Next());
    case 3:
      return random.Next();
    case 4:
      return random.Between(-1, 1) * std::pow(10, random.Between(-300, 300));
    case 5: {
      std::string text;
      for (std::uint64_t i = random.Below(8); i > 0; --i) {
        constexpr std::string_view kPieces[] = {
            "a", "\"", "\\", "\n", "\x01", "\xc3\xa9", "\xf0\x9f\x98\x80", "NaN"};
        text += kPieces[random.Below(std::size(kPieces))];
      }
      return json::value(text);
    }
    case 6: {
      json::array array;
      for (std::uint64_t i = random.Below(4); i > 0; --i) array.push_back(RandomJson(random, depth + 1));
      return array;
    }
    default: {
      json::object object;
      for (std::uint64_t i = random.Below(4); i > 0; --i)
        object[random.UuidHex()] = RandomJson(random, depth + 1);
      return object;
    }
  }
}

// D-04: all keys that other programs add are written back, value for value.
TEST(Node, UnknownKeysSurviveARewrite) {
  SeededRandom random(7);
  for (int round = 0; round < 300; ++round) {
    json::object record = *ParseJsonObject(kFulfilledNode);
    json::object extra;
    for (std::uint64_t i = random.Below(6); i > 0; --i) extra["x" + random.UuidHex()] = RandomJson(random, 0);
    for (const auto& [key, value] : extra) record[key] = value;
    record["user_data"] = RandomJson(random, 0);
    Node node = ParsedNode(WriteJson(record));
    EXPECT_EQ(ToJson(node), WriteJson(record)) << "round " << round;
  }
}

TEST(Node, TextOfAClientThatIsNotUtf8IsWrittenAsReplacement) {
  Node node;
  node.comment = "a\xff\xed\xa0\x80z\xc3";
  json::object written = *ParseJsonObject(ToJson(node));
  EXPECT_EQ(written["comment"], "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd");
}

TEST(NodeState, WordsReadBack) {
  for (std::string_view word : {"init", "building", "testing", "ready", "in-use", "used", "hold", "deleting",
                                "deleted", "failed", "aborted"}) {
    ASSERT_TRUE(ParseNodeState(word)) << word;
    EXPECT_EQ(ToString(*ParseNodeState(word)), word);
  }
  EXPECT_FALSE(ParseNodeState("uploading"));
  EXPECT_FALSE(ParseNodeState(""));
}

}  // namespace

}  // namespace nodepool
