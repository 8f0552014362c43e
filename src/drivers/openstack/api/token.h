#pragma once

#include <boost/json/array.hpp>
#include <memory>
#include <string>

#include "async/loop.h"
#include "base/log/logging.h"
#include "driver/cloud/api/credential_source.h"
#include "driver/cloud/api/signer.h"
#include "drivers/openstack/config/cloud_config.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::openstack {

// Leave to act in the cloud for a while, and where its services are.
struct Token {
  std::string text;  // a secret; empty: the cloud wants none
  WallTime expires = WallTime::max();
  std::string project_id;
  boost::json::array catalog;
};

// What a call of this cloud's services needs besides the URL: TLS, time-outs.
net::HttpCall NewCall(const CloudConfig& cloud, std::string method, std::string url);

// Error(kRetry) when it is no such answer.
Token ReadToken(const net::HttpReply& reply);

// The session's token, and what adds it to calls (driver-openstack.md 4).
class TokenSource : public driver::cloud::api::Signer {
 public:
  // Everything outlives the source.
  TokenSource(Loop& loop, net::HttpClient& http, const CloudConfig& cloud);

  Task<std::shared_ptr<const Token>> Get() { return tokens_.Get(); }
  Task<Renew> Sign(net::HttpCall& call) override;

 private:
  Task<Token> Fetch();
  Task<std::string> TokenUrl();
  Task<std::string> DiscoverUrl();

  net::HttpClient& http_;
  const CloudConfig& cloud_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  std::string url_;  // once known
  driver::cloud::api::CredentialSource<Token> tokens_;
};

}  // namespace nodepool::drivers::openstack
