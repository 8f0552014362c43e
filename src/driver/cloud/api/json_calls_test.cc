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

}  // namespace
}  // namespace nodepool::driver::cloud::api
