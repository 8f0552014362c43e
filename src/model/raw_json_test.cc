#include "model/raw_json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <thread>
#include <vector>

#include "model/component.h"
#include "model/image.h"
#include "model/node.h"
#include "model/node_request.h"

namespace nodepool {

namespace {

TEST(SharedTest, IsUsedLikeAnOptional) {
  SharedText none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none, std::nullopt);
  EXPECT_EQ(none.value_or("other"), "other");
  SharedText text = "east";
  EXPECT_TRUE(text.has_value());
  EXPECT_EQ(*text, "east");
  EXPECT_EQ(text->size(), 4u);
  EXPECT_EQ(text, std::optional<std::string>("east"));
  EXPECT_EQ(text.value_or("other"), "east");
  std::optional<std::string> copy = text;
  EXPECT_EQ(copy, "east");
  text = std::optional<std::string>();
  EXPECT_EQ(text, none);
  text = "";
  EXPECT_NE(text, none) << "an empty text is not none";
  text.reset();
  EXPECT_EQ(text, none);
}

TEST(SharedTest, EqualValuesAreOneInMemory) {
  SharedText first = std::string("a name that is longer than a short text");
  SharedText second = std::string("a name that is longer than a short text");
  EXPECT_EQ(&*first, &*second);
  second = "another name";
  EXPECT_EQ(*first, "a name that is longer than a short text");
  Shared<Resources> amounts = Resources{{"cores", 4}};
  EXPECT_EQ(&*amounts, &*Shared<Resources>(Resources{{"cores", 4}}));
  EXPECT_NE(amounts, Shared<Resources>(Resources{{"cores", 5}}));
  EXPECT_EQ(sizeof(SharedText), sizeof(void*));
}

TEST(SharedTest, AmountsThatAreNoNumbersAreFreed) {
  Resources amounts = {{"cores", std::numeric_limits<double>::quiet_NaN()}};
  Shared<Resources> first = amounts;
  Shared<Resources> second = amounts;
  EXPECT_EQ(first, second) << "thousands of them would make look-ups long";
  first.reset();
  EXPECT_EQ(second->size(), 1u);
  second.reset();
  EXPECT_EQ(second, std::nullopt);
}

TEST(SharedTest, ThreadsMayUseTheSameValues) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 2000; ++round) {
        SharedText text = std::to_string(round % 3);
        SharedText copy = text;
        text.reset();
        ASSERT_EQ(copy, std::to_string(round % 3));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

const WallTime kForeignNow = FromSeconds(1'800'000'000.25);

NodeRequest RequestOf(std::string_view text) {
  Expected<NodeRequest> request = ParseNodeRequest(text, kForeignNow);
  EXPECT_TRUE(request) << text << (request ? "" : request.error().message());
  return request.value_or(NodeRequest());
}

// Whether the record, rewritten with another state, still has the member.
bool RequestKeeps(const std::string& member) {
  NodeRequest request = RequestOf("{\"state\": \"requested\", " + member + "}");
  request.SetState(RequestState::kPending, kForeignNow);
  return ToJson(request).find(member) != std::string::npos;
}

bool NodeKeeps(const std::string& member) {
  Expected<Node> node = ParseNode("{\"state\": \"ready\", " + member + "}", kForeignNow);
  if (!node) return false;
  node->SetState(NodeState::kUsed, kForeignNow);
  return ToJson(*node).find(member) != std::string::npos;
}

// D-04: as Zuul of 2025 traces requests.
TEST(ForeignTest, NumbersOfAnySizeAreRetained) {
  EXPECT_TRUE(RequestKeeps(
      R"("requestor_data": {"span_info": {"trace_id": 214933908099603316458134831733103562640, "span_id": 1}})"));
  for (std::string number :
       {"1.5", "1.50", "-0", "-0.0", "1e400", "1E+2", "0.1000000000000000055511151231257827",
        "18446744073709551616", "NaN", "Infinity", "-Infinity"}) {
    EXPECT_TRUE(RequestKeeps("\"requestor_data\": [" + number + "]")) << number;
    EXPECT_TRUE(RequestKeeps("\"x\": " + number)) << number;
    for (std::string key : {"user_data", "driver_data", "attributes", "connection_port", "external_id"}) {
      EXPECT_TRUE(NodeKeeps("\"" + key + "\": " + number)) << key << number;
    }
  }
}

// D-04
TEST(ForeignTest, OrderRepetitionsSpacingAndEscapesAreRetained) {
  for (std::string value : {R"({"b":1,"a" : 2,"b":[ ]})", R"("\u0041\/\udc80\uD83D\ude00 caf\u00e9")",
                            "\"caf\xc3\xa9\"", R"({"\udc80": {"\ud800\ud800": "\\udc80"}})"}) {
    EXPECT_TRUE(RequestKeeps("\"requestor_data\": " + value)) << value;
    EXPECT_TRUE(RequestKeeps("\"x\": " + value + ", \"x\": 2, \"\\ud800\": 3")) << value;
    EXPECT_TRUE(NodeKeeps("\"user_data\": " + value)) << value;
  }
}

// D-04: known fields are written as they were as long as their values do not change.
TEST(ForeignTest, FieldsThatDoNotChangeKeepTheirForm) {
  for (std::string member : {R"("created_time": 1726605880)", R"("created_time": 1.72660589E9)",
                             R"("node_types": ["\udc80", "a\/b"])", R"("requestor": "\udc80")",
                             R"("requestor": 17)", R"("tenant_name": "\u0041")", R"("provider": "\udc80")",
                             R"("event_id": 214933908099603316458134831733103562640)", R"("reuse": 1)",
                             R"("declined_by": ["\u00E9"])"}) {
    EXPECT_TRUE(RequestKeeps(member)) << member;
  }
  for (std::string member :
       {R"("created_time": 1726605880)", R"("type": ["\udc80"])", R"("az": 5)", R"("slot": 1.0)",
        R"("external_id": {"b":1,"a":"\udc80"})", R"("resources": {"ram": 1.0, "cores": NaN})",
        R"("host_keys": ["\u0041"])", R"("created_time": Infinity)"}) {
    EXPECT_TRUE(NodeKeeps(member)) << member;
  }
}

TEST(ForeignTest, AFieldThatChangesTakesOurForm) {
  NodeRequest request = RequestOf(R"({"created_time": 17, "requestor": "\udc80"})");
  EXPECT_EQ(request.created_time, FromSeconds(17));
  request.created_time = FromSeconds(18);
  request.requestor = "x";
  std::string written = ToJson(request);
  EXPECT_NE(written.find(R"("created_time": 18.0)"), written.npos) << written;
  EXPECT_NE(written.find(R"("requestor": "x")"), written.npos) << written;
}

// Both names of the port are always written alike.
TEST(ForeignTest, ThePortIsRetainedUnderBothNames) {
  std::string port = R"({"token":"\u0041","n":1.0})";
  std::string written =
      ToJson(*ParseNode("{\"ssh_port\": 3, \"connection_port\": " + port + "}", kForeignNow));
  EXPECT_NE(written.find("\"connection_port\": " + port + ", \"ssh_port\": " + port + ", "), written.npos);
}

// Of a repeated key the last one counts, as Python reads it.
TEST(ForeignTest, TheLastOfAFieldCounts) {
  NodeRequest request = RequestOf(R"({"requestor": "a", "x": 1, "re\u0071uestor": "b"})");
  EXPECT_EQ(request.requestor, "b");
  EXPECT_EQ(request.foreign.unknown, "\"x\": 1");
}

// A name with half a surrogate pair, which our texts cannot hold, is read like any other name.
TEST(ForeignTest, HalvesOfSurrogatePairsAreReadAsReplacement) {
  NodeRequest request = RequestOf(R"({"node_types": ["a\udc80", "\ud83d\ude00"]})");
  EXPECT_EQ(request.node_types, (std::vector{LabelName("a\xef\xbf\xbd"), LabelName("\xf0\x9f\x98\x80")}));
}

rc::Gen<std::string> GenScalar() {
  return rc::gen::element<std::string>("null", "true", "0", "-0", "12345678901234567890123", "-1.50", "1e400",
                                       "4E-7", "NaN", "Infinity", "-Infinity", "\"\"", "\"a\"", R"("\udc80")",
                                       R"("\ud83d\ude00\ud83d")", R"("\/\u0041\\\"")", "\"\xc3\xa9\"",
                                       "\"state\"", "\"}]\"");
}

rc::Gen<std::string> GenJson(int depth) {
  return rc::gen::exec([depth] {
    static const std::vector<std::string> kBlanks = {"", " ", "\n\t"};
    auto blank = [] { return *rc::gen::elementOf(kBlanks); };
    int kind = depth == 0 ? 0 : *rc::gen::inRange(0, 3);
    if (kind == 0) return *GenScalar();
    std::string text = kind == 1 ? "[" : "{";
    int count = *rc::gen::inRange(0, 4);
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += "," + blank();
      if (kind == 2)
        text += *rc::gen::element<std::string>(R"("a")", R"("\udc80")", R"("b c")", R"("\u0061")") + ":";
      text += blank() + *GenJson(depth - 1) + blank();
    }
    return text + (kind == 1 ? "]" : "}");
  });
}

TEST(ForeignProperty, ForeignPartsAreWrittenBackToTheByte) {
  EXPECT_TRUE(rc::check([] {
    std::string data = *GenJson(3);
    std::string unknown =
        "\"x\": " + *GenJson(3) + ", \"\\ud800\": " + *GenJson(2) + ", \"x\": " + *GenJson(1);
    RC_ASSERT(RequestKeeps("\"requestor_data\": " + data));
    NodeRequest request = RequestOf("{" + unknown + ", \"requestor_data\": " + data + "}");
    RC_ASSERT(request.foreign.unknown == unknown);
    NodeRequest again = RequestOf(ToJson(request));
    RC_ASSERT(again.foreign.unknown == unknown);
    RC_ASSERT(again.requestor_data.text() == request.requestor_data.text());
    RC_ASSERT(ToJson(again) == ToJson(request));
  }));
}

// Any JSON in any field is refused with the key's name, or written back and then read the same.
TEST(ForeignProperty, AnyFieldIsRefusedOrReadTheSameAgain) {
  EXPECT_TRUE(rc::check([] {
    std::string key = *rc::gen::element<std::string>(
        "state_time", "type", "az", "connection_port", "ssh_port", "created_time", "external_id", "host_keys",
        "hold_expiration", "resources", "slot", "attributes", "allocated_to");
    std::string text = "{\"" + key + "\": " + *GenJson(2) + "}";
    Expected<Node> node = ParseNode(text, kForeignNow);
    if (!node) {
      RC_ASSERT(node.error().message().starts_with("\"" + key + "\" is not "));
      return;
    }
    std::string written = ToJson(*node);
    Expected<Node> again = ParseNode(written, kForeignNow);
    RC_ASSERT(again.has_value());
    RC_ASSERT(ToJson(*again) == written);
    RC_ASSERT((again->type == node->type && again->az == node->az && again->resources == node->resources));
    RC_ASSERT((again->created_time == node->created_time && again->host_keys == node->host_keys));
  }));
}

}  // namespace

}  // namespace nodepool
