#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launcher/launcher_fixture_for_test.h"
#include "web/access/access.h"
#include "web/requests/request_endpoints.h"

namespace nodepool::web {

// The text of one gzip file.
inline std::string Gunzipped(std::string compressed) {
  z_stream zlib{};
  EXPECT_EQ(inflateInit2(&zlib, 15 + 16), Z_OK);
  zlib.next_in = reinterpret_cast<Bytef*>(compressed.data());
  zlib.avail_in = static_cast<uInt>(compressed.size());
  std::string text;
  int result = Z_OK;
  while (result == Z_OK) {
    std::string part(64 * 1024, '\0');
    zlib.next_out = reinterpret_cast<Bytef*>(part.data());
    zlib.avail_out = static_cast<uInt>(part.size());
    result = inflate(&zlib, Z_NO_FLUSH);
    text += part.substr(0, part.size() - zlib.avail_out);
  }
  EXPECT_EQ(result, Z_STREAM_END);
  EXPECT_EQ(zlib.avail_in, 0u) << "there is more behind it";
  inflateEnd(&zlib);
  return text;
}

// The secret of each token is its hash.
inline Task<bool> MatchPlainly(std::string secret, std::string hash) { co_return secret == hash; }

inline config::WebToken Token(std::string name, std::set<config::Scope> scopes = {config::Scope::kRead,
                                                                                  config::Scope::kRequest}) {
  config::WebToken token;
  token.name = name;
  token.hash = "secret-of-" + name;
  token.scopes = std::move(scopes);
  return token;
}

inline config::Config WithTokens(std::vector<config::WebToken> tokens) {
  config::Config config;
  config.web_tokens = std::move(tokens);
  return config;
}

inline std::string TokenText(const std::string& token) { return token + ".secret-of-" + token; }

inline constexpr const char* kRequests = "/api/v1/requests";

// A launcher whose web server takes requests of several tokens.
class RequestsSiteTest : public launcher::LauncherTest {
 protected:
  void SetUp() override {
    LauncherTest::SetUp();
    config::WebToken bounded = Token("bounded");
    bounded.max_nodes = 2;
    access_.Configure(WithTokens({Token("ci"), Token("other"), Token("reader", {config::Scope::kRead}),
                                  Token("ops", {config::Scope::kRead, config::Scope::kOperate}), bounded}));
    running_ = &StartLauncher();
    router_.emplace(RequestEndpoints(time_.loop(), *running_->launcher, access_));
  }
  net::HttpRequest Asking(std::string method, std::string target, std::string body = "",
                          std::string token = "ci") {
    net::HttpRequest request;
    request.method = std::move(method);
    EXPECT_TRUE(net::ParseTarget(target, request));
    request.headers["content-type"] = "application/json";
    request.headers["authorization"] = "Bearer " + TokenText(token);
    request.headers["accept"] = "application/json";
    request.headers["host"] = "nodepool.example.org";
    request.peer = "192.0.2.1";
    request.body = std::move(body);
    return request;
  }
  Response Ask(std::string method, std::string target, std::string body = "", std::string token = "ci") {
    return Send(Asking(std::move(method), std::move(target), std::move(body), std::move(token)));
  }
  Response Send(net::HttpRequest request) { return time_.Run(router_->Answer(std::move(request))); }
  static std::string LocationOf(const Response& response) {
    for (const auto& [name, value] : response.headers) {
      if (name == "Location") return value;
    }
    return "";
  }
  // The location of a new request.
  std::string Make(std::string labels = R"(["small"])", std::string token = "ci") {
    Response response = Ask("POST", kRequests, R"({"labels": )" + labels + "}", std::move(token));
    EXPECT_EQ(response.status, 201) << response.body;
    return LocationOf(response);
  }
  boost::json::object Show(const std::string& location, std::string token = "ci") {
    Response response = Ask("GET", location, "", std::move(token));
    EXPECT_EQ(response.status, 200) << response.body;
    return boost::json::parse(response.body).as_object();
  }
  std::string MakeHeld(std::string labels = R"(["small"])") {
    std::string location = Make(std::move(labels));
    EXPECT_TRUE(Await([&] { return Show(location).at("state") == "held"; }));
    return location;
  }
  // Labels that only another launcher has.
  std::string MakeWaiting() {
    AddForeignPool([](Component& pool) { pool.supported_labels = {LabelName("rare")}; });
    time_.Advance(std::chrono::seconds(1));
    return Make(R"(["rare"])");
  }

  Running* running_ = nullptr;
  Access access_{time_.loop(), &MatchPlainly};
  std::optional<Router> router_;
  log::Capture log_;
};

}  // namespace nodepool::web
