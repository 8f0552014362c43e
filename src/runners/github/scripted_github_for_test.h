#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "async/loop.h"
#include "net/http/curl.h"
#include "net/http/http_client.h"

namespace nodepool::runners::github {

// Answers by method and path; the last answer of a path is repeated.
class ScriptedGithub : public net::HttpClient {
 public:
  explicit ScriptedGithub(Loop& loop) : loop_(loop) {}

  Task<net::HttpReply> Send(net::HttpCall call) override {
    calls.push_back(call);
    most_at_once = std::max(most_at_once, ++at_once_);
    co_await loop_.SleepFor(std::chrono::milliseconds(10));
    --at_once_;
    net::Url url = *net::Url::Parse(call.url);
    std::deque<net::HttpReply>& script = answers[call.method + " " + url.path()];
    if (script.empty()) co_return net::HttpReply{404, {}, "{\"message\": \"Not Found\"}"};
    net::HttpReply reply = script.front();
    if (script.size() > 1) script.pop_front();
    co_return reply;
  }
  void Answer(const std::string& call, int status, std::string body, net::HttpHeaders headers = {}) {
    answers[call].push_back({status, std::move(headers), std::move(body)});
  }
  int Count(std::string_view path_part) const {
    return static_cast<int>(std::ranges::count_if(
        calls, [&](const net::HttpCall& call) { return call.url.find(path_part) != std::string::npos; }));
  }

  std::map<std::string, std::deque<net::HttpReply>> answers;
  std::vector<net::HttpCall> calls;
  int most_at_once = 0;

 private:
  Loop& loop_;
  int at_once_ = 0;
};

inline std::string HeaderIn(const net::HttpCall& call, std::string_view name) {
  for (const auto& [key, value] : call.headers) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace nodepool::runners::github
