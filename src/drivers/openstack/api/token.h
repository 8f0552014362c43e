#pragma once

#include <boost/json/array.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "base/log/logging.h"
#include "driver/cloud/api/credential_source.h"
#include "driver/cloud/api/signer.h"
#include "drivers/openstack/config/cloud_config.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::openstack {

// A token of the cloud, valid for a limited time, and the catalog of services.
struct Token {
  std::string text;  // secret; empty: the cloud needs none
  WallTime expires = WallTime::max();
  std::string project_id;
  boost::json::array catalog;
};

// A call with this cloud's settings: TLS, time-outs.
net::HttpCall NewCall(const CloudConfig& cloud, std::string method, std::string url);

// Error(kRetry): the answer has no token. `where` begins its message.
Token ReadToken(const net::HttpReply& reply, std::string_view where);

// Gets the session's token and adds it to calls (driver-openstack.md 4).
class TokenSource : public driver::cloud::api::Signer {
 public:
  // Everything outlives the source.
  TokenSource(Loop& loop, net::HttpClient& http, const CloudConfig& cloud);

  Task<std::shared_ptr<const Token>> Get() { return tokens_.Get(); }
  Task<Renew> Sign(net::HttpCall& call) override;

 private:
  Task<Token> Fetch();
  Task<net::HttpReply> Send(net::HttpCall call);
  Task<std::string> TokenUrl();
  Task<std::string> DiscoverUrl();

  net::HttpClient& http_;
  const CloudConfig& cloud_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  std::string url_;  // once known
  driver::cloud::api::CredentialSource<Token> tokens_;
};

}  // namespace nodepool::drivers::openstack
