#include "web/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/virtual_time.h"
#include "web/caching.h"

namespace nodepool::web {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

class RouterTest : public ::testing::Test {
 protected:
  static Endpoint Says(std::string method, std::string path) {
    return {method, path, Pure([=](const Request&) {
              Response response;
              response.body = method + path;
              return response;
            })};
  }
  Response Ask(std::string method, std::string path, std::string accept = "") {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    if (!accept.empty()) request.headers["accept"] = std::move(accept);
    return time_.Run(router_.Answer(std::move(request)));
  }

  testing::VirtualTime time_;
  Router router_{{Says("GET", "/a"), Says("POST", "/a"), Says("GET", "/b")}};
};

TEST_F(RouterTest, MethodAndPathDecide) {
  EXPECT_EQ(Ask("GET", "/a").body, "GET/a");
  EXPECT_EQ(Ask("POST", "/a").body, "POST/a");
  EXPECT_EQ(Ask("HEAD", "/b").body, "GET/b") << "the server leaves the body out";
}

TEST_F(RouterTest, PathsAreExact) {  // operations.6
  for (const char* path : {"/", "/a/", "/A", "/b/c"}) EXPECT_EQ(Ask("GET", path).status, 404) << path;
}

TEST_F(RouterTest, AnotherMethodIsToldWhatThereIs) {
  Response response = Ask("DELETE", "/a");
  EXPECT_EQ(response.status, 405);
  EXPECT_THAT(response.headers, Contains(Pair("Allow", "GET, HEAD, POST")));
}

TEST_F(RouterTest, ErrorsComeAsAskedFor) {  // operations.6.6
  EXPECT_EQ(Ask("GET", "/x").body, "404 Not Found\n\nThere is nothing at /x.\n");
  Response response = Ask("GET", "/x", "application/json");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body,
            R"({"message":"There is nothing at /x.","code":"404 Not Found","title":"Not Found"})");
}

TEST(CachingTest, Headers) {  // operations.6.6
  Response response;
  AddCachingHeaders(response, FromSeconds(784111777.9));
  EXPECT_THAT(response.headers, ElementsAre(Pair("Access-Control-Allow-Origin", "*"),
                                            Pair("Cache-Control", "max-age=1, public"),
                                            Pair("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                                            Pair("Expires", "Sun, 06 Nov 1994 08:49:38 GMT")));
}

}  // namespace
}  // namespace nodepool::web
