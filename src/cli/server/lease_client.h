#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/attempt.h"
#include "base/error.h"
#include "cli/node_claim.h"
#include "model/lease.h"
#include "net/http/http_client.h"

namespace nodepool::cli {

// What a server says of a lease (http-requests.md 3), as far as its client needs it.
struct LeaseView {
  LeaseId id;
  LeaseState state = LeaseState::kWaiting;
  Duration lasts{};                  // without a renewal; positive
  std::string failure;               // why it failed
  std::optional<std::size_t> ready;  // nodes that are ready; none: its request is not accepted yet
  std::string why;                   // the reason that decides that it waits; empty: none
  std::vector<ClaimedNode> nodes;    // of a held lease; records have what is needed for a login
};

// The server is trusted no more than records are: Error(kInvalid) says what is wrong with the answer.
Expected<LeaseView> ReadLeaseView(std::string_view answer);

// Where requests over HTTP go, and as whom.
struct ServerAccess {
  std::string url;      // of the web server or of the proxy before it, without a slash at the end
  std::string token;    // NAME.SECRET; sent to this server only, and never logged
  std::string ca_path;  // PEM file of the authorities to trust; empty: the system's
};

// The calls about requests over HTTP (http-requests.md 3), each sent once. Error(kRetry): there was no
// answer, or one that says to try again (429, 5xx); kNotFound: there is no such lease; kConflict: its state
// does not allow the call; kInvalid: the answer or the certificate cannot be trusted; kFail: the server
// refuses, with its reason.
class LeaseClient {
 public:
  // `http` outlives it.
  LeaseClient(net::HttpClient& http, ServerAccess access);

  // Repeated with the same key it makes one lease.
  Task<LeaseView> Make(NodeWish wish, Duration lease, std::string key);
  // Waits for so long at most while the lease is waiting; then renews it, too.
  Task<LeaseView> Show(LeaseId id, Duration wait);
  Task<LeaseView> Renew(LeaseId id);
  // A lease that is gone counts as ended.
  Task<> End(LeaseId id);

  // For messages.
  std::string server() const { return net::UrlForLog(access_.url); }

 private:
  net::HttpCall CallOf(const char* method, const std::string& path) const;
  Task<std::string> Ask(net::HttpCall call);
  // A certificate that is not trusted: the message names the option that says whom to trust.
  [[noreturn]] void RethrowWithRemedy(const Failure& failure) const;
  Error RefusalOf(const net::HttpReply& reply) const;

  net::HttpClient& http_;
  const ServerAccess access_;
  std::shared_ptr<const net::TlsSettings> tls_;
};

}  // namespace nodepool::cli
