#include "web/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "async/testing/virtual_time.h"

namespace nodepool::web {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class PageTest : public ::testing::Test {
 protected:
  Response Ask(const std::string& path, std::map<std::string, std::string> headers = {}) {
    Request request;
    request.path = path;
    request.headers = std::move(headers);
    return time_.Run(router_.Answer(std::move(request)));
  }

  static std::string TagOf(const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "ETag") return value;
    }
    return "";
  }

  testing::VirtualTime time_;
  Router router_{PageEndpoints()};
};

TEST_F(PageTest, EveryFileIsServed) {  // PAGE-7
  EXPECT_THAT(Ask("/").body, HasSubstr("<title>Nodepool</title>"));
  EXPECT_EQ(Ask("/").content_type, "text/html; charset=UTF-8");
  EXPECT_EQ(Ask("/assets/main.js").content_type, "text/javascript; charset=UTF-8");
  EXPECT_EQ(Ask("/assets/style.css").content_type, "text/css; charset=UTF-8");
  for (const char* missing :
       {"/index.html", "/assets", "/assets/", "/assets/index.html", "/assets/../main.js"})
    EXPECT_EQ(Ask(missing).status, 404) << missing;
}

TEST_F(PageTest, NothingComesFromElsewhereOrIsWrittenIntoThePage) {  // PAGE-8
  for (const auto& [name, value] : Ask("/").headers) {
    if (name != "Content-Security-Policy") continue;
    EXPECT_THAT(value, HasSubstr("default-src 'none'; script-src 'self'"));
  }
  EXPECT_THAT(Ask("/").headers, Contains(Pair("X-Content-Type-Options", "nosniff")));
  EXPECT_THAT(Ask("/").headers, Contains(Pair("Referrer-Policy", "no-referrer")));
  std::regex risky(
      R"(innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://(?!www\.w3\.org/2000/svg))");
  std::regex in_html(R"(\son\w+=|<style|style="|<script(?![^>]*src=))");
  for (const PageFile& file : PageFiles()) {
    std::string text(file.plain);
    EXPECT_FALSE(std::regex_search(text, risky)) << file.name;
    EXPECT_FALSE(file.name == "index.html" && std::regex_search(text, in_html));
  }
}

TEST_F(PageTest, UrlsAreRelative) {  // PAGE-7
  std::regex absolute(R"((href|src)="/|fetch\([`'"]/|from '/)");
  for (const PageFile& file : PageFiles())
    EXPECT_FALSE(std::regex_search(std::string(file.plain), absolute)) << file.name;
}

TEST_F(PageTest, CompressedForClientsThatTakeIt) {
  Response plain = Ask("/assets/main.js");
  EXPECT_THAT(plain.headers, Not(Contains(Pair("Content-Encoding", "gzip"))));
  for (const char* taken : {"gzip", "deflate, gzip", "br, GZIP;q=0.5", "gzip; q=1.0"}) {
    Response response = Ask("/assets/main.js", {{"accept-encoding", taken}});
    EXPECT_THAT(response.headers, Contains(Pair("Content-Encoding", "gzip"))) << taken;
    EXPECT_LT(response.body.size(), plain.body.size());
  }
  for (const char* refused : {"gzip;q=0", "gzip; q=0.000", "br", "x-gzip2", ""}) {
    Response response = Ask("/assets/main.js", {{"accept-encoding", refused}});
    EXPECT_EQ(response.body, plain.body) << refused;
  }
}

TEST_F(PageTest, AnUnchangedFileIsNotSentAgain) {
  std::string tag = TagOf(Ask("/"));
  for (const std::string& known : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
    Response response = Ask("/", {{"if-none-match", known}});
    EXPECT_EQ(response.status, 304) << known;
    EXPECT_EQ(response.body, "");
  }
  EXPECT_EQ(Ask("/", {{"if-none-match", "\"other\""}}).status, 200);
}

// HTTP-7
TEST_F(PageTest, TheCompressedFormHasATagOfItsOwn) {
  std::string plain = TagOf(Ask("/"));
  std::string compressed = TagOf(Ask("/", {{"accept-encoding", "gzip"}}));
  EXPECT_NE(plain, compressed);
  EXPECT_EQ(Ask("/", {{"accept-encoding", "gzip"}, {"if-none-match", compressed}}).status, 304);
  EXPECT_EQ(Ask("/", {{"accept-encoding", "gzip"}, {"if-none-match", plain}}).status, 200);
  EXPECT_EQ(Ask("/", {{"if-none-match", compressed}}).status, 200);
}

// What a browser loads before it shows anything of the cluster.
TEST_F(PageTest, TheFirstViewIsSmall) {  // PAGE-7
  std::size_t plain = 0;
  std::size_t compressed = 0;
  for (const PageFile& file : PageFiles()) {
    plain += file.plain.size();
    compressed += file.gzip.size();
  }
  EXPECT_LT(plain, 128u << 10);
  EXPECT_LT(compressed, 50u << 10);
}

}  // namespace
}  // namespace nodepool::web
