#include "driver/cloud/api/json_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "async/testing/virtual_time.h"
#include "driver/cloud/api/scripted_client_for_test.h"

namespace nodepool::driver::cloud::api {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Task<Page<int>> NumbersFrom(std::string next) {
  int first = next.empty() ? 0 : std::stoi(next);
  Page<int> page;
  page.items = {first, first + 1};
  if (first < 4) page.next = std::to_string(first + 2);
  co_return page;
}

Task<Page<int>> Circle(std::string next) {
  Page<int> page;
  page.next = next == "a" ? "b" : "a";
  co_return page;
}

TEST(ReadPages, ReadsUntilTheLastPage) {
  testing::VirtualTime time;
  EXPECT_THAT(time.Run(ReadPages<int>("numbers", &NumbersFrom)), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ReadPages, ACycleIsDetected) {
  testing::VirtualTime time;
  try {
    time.Run(ReadPages<int>("numbers", &Circle));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_EQ(error.message(), "Endless pagination loop in the list of numbers");
  }
}

Task<Page<int>> Endless(std::string next) {
  Page<int> page;
  page.items = {1};
  page.next = std::to_string(next.empty() ? 1 : std::stoi(next) + 1);
  co_return page;
}

TEST(ReadPages, AListThatDoesNotEndIsAFault) {
  testing::VirtualTime time;
  try {
    time.Run(ReadPages<int>("numbers", &Endless));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_EQ(error.message(), "the list of numbers does not end: 10000 pages with 10000 entries, 0 MiB");
  }
}

Task<Page<int>> EndlessOfLargePages(std::string next) {
  Page<int> page = co_await Endless(std::move(next));
  page.bytes = 50 << 20;
  co_return page;
}

TEST(ReadPages, AListOfTooManyBytesIsAFault) {
  testing::VirtualTime time;
  try {
    time.Run(ReadPages<int>("numbers", &EndlessOfLargePages));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.verdict(), Verdict::kFail);
    EXPECT_EQ(error.message(), "the list of numbers does not end: 3 pages with 3 entries, 150 MiB");
  }
}

TEST(NextLink, IsFoundInTheHeader) {
  EXPECT_EQ(NextLink({{"link", "<http://x/a?m=1>; rel=\"prev\", <http://x/a?m=3>; rel=\"next\""}}),
            "http://x/a?m=3");
  EXPECT_EQ(NextLink({{"link", "</a?m=3>; rel=next"}}), "/a?m=3");
  EXPECT_EQ(NextLink({{"link", "rel=\"next\""}, {"other", "</a>; rel=next"}}), "");
}

std::string NameOf(const boost::json::object& entry) { return TextIn(entry, "name"); }
std::string FaultOf(const boost::json::object& answer) { return TextIn(answer, "fault"); }

class JsonCallsTest : public ::testing::Test {
 protected:
  static ApiRequest Request() {
    ApiRequest request;
    request.name = "things.list";
    request.call.url = "http://api/things?size=2";
    return request;
  }
  Outcome<std::vector<std::string>> List(ListFormat format) {
    Task<std::vector<std::string>> list = CallForList<std::string>(client, Request(), format, &NameOf);
    return time.Run(Attempt(std::move(list)), std::chrono::hours(1));
  }

  testing::VirtualTime time;
  std::map<std::string, std::string> answers;  // by URL
  ScriptedClient http{time.loop(), [this](const net::HttpCall& call) {
                        return net::HttpReply{200, {}, answers[call.url]};
                      }};
  SeededRandom random{1};
  BlockingPool pool{0};
  NoSigner signer;
  ApiClient client{time.loop(), pool, random, http, signer, log::Logger("test"), {}};
};

TEST_F(JsonCallsTest, PagesByAToken) {
  answers["http://api/things?size=2"] = R"({"items": [{"name": "a"}, 7, {"name": "b"}], "token": "x/1"})";
  answers["http://api/things?size=2&after=x%2F1"] = R"({"items": [{"name": "c"}]})";
  EXPECT_THAT(List({"items", "token", "after"}).value(), ElementsAre("a", "b", "c"));
}

TEST_F(JsonCallsTest, PagesByAddress) {
  answers["http://api/things?size=2"] = R"({"value": [{"name": "a"}], "nextLink": "http://other/2"})";
  answers["http://other/2"] = R"({"value": [{"name": "b"}], "nextLink": ""})";
  EXPECT_THAT(List({"value", "nextLink"}).value(), ElementsAre("a", "b"));
  answers["http://api/things?size=2"] = R"({"value": [], "next": {"href": "http://other/2"}})";
  EXPECT_THAT(List({"value", "next"}).value(), ElementsAre("b"));
}

TEST_F(JsonCallsTest, APageThatFailsFailsTheList) {
  answers["http://api/things?size=2"] = R"({"items": [{"name": "a"}], "token": "x"})";
  answers["http://api/things?size=2&after=x"] = R"({"items": [], "fault": "a part is away"})";
  Outcome<std::vector<std::string>> list = List({"items", "token", "after", &FaultOf});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().verdict(), Verdict::kRetry);
  EXPECT_THAT(list.error().message(), HasSubstr("things.list: a part is away"));
  answers["http://api/things?size=2&after=x"] = "[]";
  EXPECT_THAT(List({"items", "token", "after"}).error().message(),
              HasSubstr("things.list was answered without an object"));
}

TEST_F(JsonCallsTest, AnObjectForAnObject) {
  answers["http://api/things?size=2"] = R"({"name": "a"})";
  ApiRequest request = Request();
  request.call.method = "POST";
  SetBody({{"size", 1}}, request.call);
  EXPECT_EQ(NameOf(time.Run(CallForObject(client, request))), "a");
  EXPECT_EQ(http.calls.back().body, R"({"size":1})");
  EXPECT_EQ(HeaderOf(http.calls.back(), "Content-Type"), "application/json");
  answers["http://api/things?size=2"] = "7";
  EXPECT_THROW(time.Run(CallForObject(client, request)), Error);
}

// LA-27
TEST(Templates, AreFilledAsPythonDoes) {
  NodeRequest request;
  request.requestor = "zuul";
  request.requestor_data = boost::json::parse(R"({"a": {"b": [1, "x'y", null, true]}})");
  request.node_types = {LabelName("one"), LabelName("two")};
  RequestId id("100-1");
  auto fill = [&](const std::string& text) { return FillTemplate(text, id, request); };
  EXPECT_EQ(fill("{request.id} {request.requestor} {request.tenant_name}"), "100-1 zuul None");
  EXPECT_EQ(fill("{request.labels} {request.labels[1]}"), "['one', 'two'] two");
  EXPECT_EQ(fill("{request.requestor_data[a][b]}"), R"([1, "x'y", None, True])");
  EXPECT_EQ(fill("{{{request.relative_priority}}}"), "{0}");
  for (const char* broken :
       {"{", "}", "{x}", "{request.x}", "{request.labels[9]}", "{request.labels[", "{}"}) {
    EXPECT_THROW(fill(broken), Error) << broken;
  }
}

}  // namespace

}  // namespace nodepool::driver::cloud::api
