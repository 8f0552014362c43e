#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/event.h"
#include "config/config.h"
#include "runners/github/calls.h"
#include "runners/github/jobs.h"
#include "runners/scale_sets.h"

namespace nodepool::runners::github {

// Where the Actions service of a config URL is, and the token for it.
struct Admin {
  std::string base;   // without a slash at the end
  std::string token;  // secret
};

// The admin connection: made when it is needed, renewed a minute before its end (runners.md 2.3).
class AdminConnection {
 public:
  // Both outlive it.
  AdminConnection(Calls& calls, Login& login, Scope scope);

  // Error(kInvalid) and ServiceError when GitHub refuses us.
  Task<Admin> Get();
  // The service does not accept its token any more.
  void Discard() { admin_.reset(); }

 private:
  Task<Admin> Make();
  Task<std::string> RegistrationToken();
  Task<net::HttpReply> Register(std::string token);

  Calls& calls_;
  Login& login_;
  Scope scope_;
  std::optional<Admin> admin_;
  SteadyTime good_until_{};
  Gate gate_{1};
};

// For how long a token is good, by the claims in it, which are not verified; nullopt: it does not say so.
std::optional<WallTime> EndOfToken(const std::string& token);

// The Actions service of one config URL (runners.md 2.4 to 2.9). A call that it refuses with 401 is made once
// more with a new admin connection, or a new token of the session.
class ActionsService : public ScaleSets {
 public:
  // Everything outlives it. Error(kInvalid): the service's address cannot be used.
  ActionsService(Loop& loop, Random& random, net::HttpClient& http, metrics::Metrics& metrics,
                 const config::RunnerService& service);

  Task<std::int64_t> GroupId(std::string name) override;
  Task<std::optional<ScaleSet>> FindSet(std::string name, std::int64_t group) override;
  Task<ScaleSet> MakeSet(ScaleSetOrder order) override;
  Task<ScaleSet> ChangeSet(std::int64_t id, ScaleSetOrder order) override;
  Task<> DeleteSet(std::int64_t id) override;
  Task<MessageSession> OpenSession(std::int64_t set, std::string owner) override;
  Task<> CloseSession(std::int64_t set, std::string session) override;
  Task<std::optional<MessageBatch>> NextBatch(MessageSession& session, std::int64_t last,
                                              std::int64_t capacity) override;
  Task<> Acknowledge(MessageSession& session, std::int64_t batch) override;
  Task<std::vector<std::int64_t>> Acquire(MessageSession& session,
                                          std::vector<std::int64_t> requests) override;
  Task<Registration> Register(RunnerOrder order) override;
  Task<std::optional<RegisteredRunner>> FindRunner(std::string name) override;
  Task<bool> HasRunner(std::int64_t id) override;
  Task<Removal> RemoveRunner(std::int64_t id) override;
  Task<bool> IsPublic(std::string repository) override;
  Task<std::string> NewestVersion() override;
  Task<std::vector<RegisteredRunner>> ListRunners() override;

 private:
  struct Request {
    std::string_view kind;  // a literal
    std::string method;
    std::string target;  // below _apis/, perhaps with a query
    std::string body = {};
    bool may_be_repeated = true;
  };

  Task<net::HttpReply> Send(Request request);
  Task<net::HttpReply> SendOnce(const Request& request, Admin admin);
  Task<boost::json::value> SendForJson(Request request);
  // A call with the session's token. `make` returns it for the token of the moment.
  Task<net::HttpReply> SendForSession(std::string_view kind, MessageSession& session,
                                      std::function<net::HttpCall(const MessageSession&)> make);
  Task<> RenewToken(MessageSession& session);
  Task<std::vector<RegisteredRunner>> Runners(std::string query);

  Scope scope_;
  std::string site_;
  Calls calls_;
  Login login_;
  AdminConnection admin_;
  Repositories repositories_;
  Gate registrations_{kMostRegistrations};
};

}  // namespace nodepool::runners::github
