#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/node_claim.h"
#include "model/node_request.h"
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

// For how long things may last.
struct LeaseTimes {
  Duration lease = std::chrono::minutes(5);          // of the lease, without a renewal
  Duration first_answer = std::chrono::seconds(10);  // until the server must have answered once
};

// A claim that is a lease over HTTP. A server that does not answer is asked again until the lease's end;
// after that the nodes are not ours any more.
class LeaseClaim : public NodeClaim {
 public:
  // `console` and `client` outlive it.
  LeaseClaim(Console& console, LeaseClient& client, NodeWish wish, LeaseTimes times);

  Task<> Obtain() override;
  Task<> Keep(SteadyTime end) override;
  // Reports, and does not throw, that the server could not be asked.
  Task<> End() override;

  std::vector<ClaimedNode> nodes() const override { return nodes_; }
  std::string Progress() const override;
  std::string WhyWaiting() const override;
  Task<> AskForProgress() override;

 private:
  using Call = Task<LeaseView> (LeaseClaim::*)();

  Task<LeaseView> Make();
  Task<LeaseView> Poll();
  Task<LeaseView> Renew();
  // Calls until there is an answer, or an error that another attempt does not cure, or the deadline.
  Task<LeaseView> Insist(Call call, SteadyTime deadline);
  bool IsFinal(Verdict verdict) const;
  Task<> GiveBack();
  Task<> GiveBackOnce();
  void DropNodesBut(const std::vector<ClaimedNode>& kept);

  Console& console_;
  LeaseClient& client_;
  const NodeWish wish_;
  const LeaseTimes times_;
  const std::string key_;
  bool may_exist_ = false;  // the server may have made a lease
  LeaseView seen_;          // the latest answer; without an id before the first
  SteadyTime renewed_{};    // a renewal was sent then, and confirmed
  std::vector<ClaimedNode> nodes_;
};

}  // namespace nodepool::cli
