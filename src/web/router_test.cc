#include "web/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/testing/virtual_time.h"
#include "web/lists/recent_answers.h"

namespace nodepool::web {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

class RouterTest : public ::testing::Test {
 protected:
  static Endpoint Says(std::string method, std::string path) {
    return {method, path, Pure([=](const Request& request) {
              Response response;
              response.body = method + path;
              std::string separator = " ";
              for (const auto& [name, value] : request.query)
                response.body += std::exchange(separator, "&") + name + "=" + value;
              return response;
            })};
  }
  Response Ask(std::string method, std::string path, std::string accept = "") {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    if (!accept.empty()) request.headers["accept"] = std::move(accept);
    return Ask(std::move(request));
  }
  Response Ask(Request request) { return time_.Run(router_.Answer(std::move(request))); }

  testing::VirtualTime time_;
  static Endpoint ForAnyMethod(Endpoint endpoint) {
    endpoint.takes_any_method = true;
    return endpoint;
  }

  Router router_{{Says("GET", "/a"), Says("POST", "/a"), Says("GET", "/b"), ForAnyMethod(Says("GET", "/c"))}};
};

TEST_F(RouterTest, MethodAndPathDecide) {
  EXPECT_EQ(Ask("GET", "/a").body, "GET/a");
  EXPECT_EQ(Ask("POST", "/a").body, "POST/a");
  EXPECT_EQ(Ask("HEAD", "/b").body, "GET/b") << "the server leaves the body out";
}

TEST_F(RouterTest, PathsAreExact) {  // operations.md 6
  for (const char* path : {"/", "/a/", "/A", "/b/c"}) EXPECT_EQ(Ask("GET", path).status, 404) << path;
}

// ACT-12
TEST_F(RouterTest, DotsAreNoNames) {
  EXPECT_THAT(ParametersIn("/images/debian.12/build", "/images/{image}/build"), ElementsAre("debian.12"));
  for (const char* name : {"", ".", ".."})
    EXPECT_TRUE(ParametersIn(std::string("/images/") + name + "/build", "/images/{image}/build").empty())
        << name;
}

TEST_F(RouterTest, AnotherMethodGetsTheListOfMethods) {
  Response response = Ask("DELETE", "/a");
  EXPECT_EQ(response.status, 405);
  EXPECT_THAT(response.headers, Contains(Pair("Allow", "GET, HEAD, POST")));
}

TEST_F(RouterTest, SomeAnswerAnyMethod) {  // operations.6.6
  for (const char* method : {"GET", "HEAD", "POST", "OPTIONS", "NONSENSE"})
    EXPECT_EQ(Ask(method, "/c").body, "GET/c") << method;
}

TEST_F(RouterTest, TheyReadForms) {  // operations.6.2
  Request request;
  request.method = "POST";
  request.path = "/c";
  request.query = {{"fields", "of+query"}};
  request.headers["content-type"] = "application/x-www-form-urlencoded; charset=UTF-8";
  request.body = "fields=of+form&node_id=%30";
  EXPECT_EQ(Ask(request).body, "GET/c fields=of form&node_id=0&fields=of+query");
  request.body = "node_id=%3";
  EXPECT_EQ(Ask(request).status, 400);
  request.headers["content-type"] = "text/plain";
  EXPECT_EQ(Ask(request).body, "GET/c fields=of+query");
}

TEST_F(RouterTest, ErrorsHaveTheAcceptedFormat) {  // operations.6.6
  EXPECT_EQ(Ask("GET", "/x").body, "404 Not Found\n\nThere is nothing at /x.\n");
  Response response = Ask("GET", "/x", "application/json");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body,
            R"({"message":"There is nothing at /x.","code":"404 Not Found","title":"Not Found"})");
  std::string browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
  response = Ask("GET", "/<b>&", browser);
  EXPECT_EQ(response.content_type, "text/html; charset=UTF-8");
  EXPECT_EQ(response.body,
            "<html>\n<head><title>404 Not Found</title></head>\n<body>\n<h1>404 Not Found</h1>\n"
            "<p>There is nothing at /&lt;b&gt;&amp;.</p>\n</body>\n</html>\n");
  for (const char* accept : {"*/*", "text/*", "text/plain, text/html", "image/png", "nonsense"})
    EXPECT_EQ(Ask("GET", "/x", accept).content_type, "text/plain; charset=UTF-8") << accept;
  for (const char* accept : {"application/*", "application/json;q=0.9, text/plain;q=0.5"})
    EXPECT_EQ(Ask("GET", "/x", accept).content_type, "application/json") << accept;
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
