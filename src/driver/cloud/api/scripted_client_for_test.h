#pragma once

#include <functional>
#include <vector>

#include "async/loop.h"
#include "net/http/http_client.h"

namespace nodepool::driver::cloud::api {

// Answers as a function says, without a network: for tests in virtual time.
class ScriptedClient : public net::HttpClient {
 public:
  using Answer = std::function<net::HttpReply(const net::HttpCall& call)>;  // may throw

  ScriptedClient(Loop& loop, Answer answer) : loop_(loop), answer(std::move(answer)) {}

  Task<net::HttpReply> Send(net::HttpCall call) override {
    calls.push_back(call);
    ++under_way;
    most_under_way = std::max(most_under_way, under_way);
    if (is_silent) {
      co_await loop_.SleepFor(call.timeouts.answer);
      --under_way;
      throw net::HttpError(Verdict::kRetry, "there was no answer", true);
    }
    co_await loop_.SleepFor(latency);
    --under_way;
    co_return answer(call);
  }

 private:
  Loop& loop_;

 public:
  Answer answer;
  Duration latency = std::chrono::milliseconds(10);
  bool is_silent = false;
  std::vector<net::HttpCall> calls;
  int under_way = 0;
  int most_under_way = 0;
};

// The value of a header of a call, or empty.
inline std::string HeaderOf(const net::HttpCall& call, std::string_view name) {
  for (const auto& [key, value] : call.headers) {
    if (key == name) return value;
  }
  return "";
}

}  // namespace nodepool::driver::cloud::api
