#pragma once

#include <boost/json/array.hpp>
#include <memory>
#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "drivers/openstack/cloud_config.h"
#include "net/http_client.h"

namespace nodepool::drivers::openstack {

// Leave to act in the cloud for a while, and where its services are.
struct Token {
  std::string text;  // a secret; empty: the cloud wants none
  WallTime expires;
  std::string project_id;
  boost::json::array catalog;
};

// What a call of this cloud's services needs besides the URL: TLS, time-outs.
net::HttpCall NewCall(const CloudConfig& cloud, std::string method, std::string url);

// Error(kRetry) when it is no such answer.
Token ReadToken(const net::HttpReply& reply);

// The session's token: fetched at first use, again 120 s before it expires, and when
// a service did not take it (driver-openstack.md 4). Whoever needs it meanwhile waits
// for the one request. A refusal stands for 15 s.
class TokenSource {
 public:
  // Everything outlives the source.
  TokenSource(Loop& loop, net::HttpClient& http, const CloudConfig& cloud);

  Task<std::shared_ptr<const Token>> Get();
  // That one is not valid any more.
  void Discard(const std::shared_ptr<const Token>& token);

 private:
  bool IsUsable() const;
  Task<> Fetch();
  Task<std::string> TokenUrl();
  Task<std::string> DiscoverUrl();

  Loop& loop_;
  net::HttpClient& http_;
  const CloudConfig& cloud_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  std::string url_;  // once known
  std::shared_ptr<const Token> token_;
  bool is_fetching_ = false;
  // The cloud refused us: it is not asked again at once, however many want a token.
  std::optional<Error> refusal_;
  SteadyTime refused_until_{};
  WaitList fetched_;
};

}  // namespace nodepool::drivers::openstack
