#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cloud/adapter.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/json_calls.h"
#include "drivers/aws/api/credential_fetcher.h"
#include "drivers/aws/api/ebs.h"
#include "drivers/aws/api/s3.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/config/aws_config.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

// Calls EC2 for one provider (driver-aws.md 5.1, 6). Throttled calls are repeated as long as their caller
// waits; other passing faults a few times.
class Ec2 {
 public:
  struct Options {
    double rate = 0;  // calls per second that change something, reads ten times as many; 0: unlimited
    driver::cloud::api::CallMetrics metrics;
  };

  // Everything outlives it.
  Ec2(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
      RequestSigner& signer, log::Logger logger, Options options);

  // Reads the answer's root element; runs off the loop if the answer is large.
  template <class T>
  using Read = std::function<T(const pugi::xml_node& root)>;

  // Errors: ApiError, whose code is AWS's; those of ApiClient::Call.
  template <class T>
  Task<T> Call(Query query, Read<T> read) {
    Answer answer = co_await Send(std::move(query));
    if (answer.body.size() <= kParseHere) co_return Parse(answer, read);
    auto parse = [answer = std::move(answer), read] { return Parse(answer, read); };
    T result = co_await OnBlockingPool(pool_, std::move(parse));
    co_return result;
  }
  // The same for a call whose answer does not matter.
  Task<> Call(Query query);

  // All pages of a list.
  template <class T>
  Task<std::vector<T>> List(Query query, std::vector<T> (*read)(const pugi::xml_node& root)) {
    std::string what = query.action();
    auto read_page = [this, query = std::move(query), read](std::string next) {
      return ReadPage<T>(query, read, std::move(next));
    };
    return driver::cloud::api::ReadPages<T>(std::move(what), std::move(read_page));
  }

 private:
  static constexpr std::size_t kParseHere = 64 * 1024;

  struct Answer {
    std::string call;  // for errors
    std::string request_id;
    std::string body;
  };

  template <class T>
  struct PageAnswer {
    std::vector<T> items;
    std::string next;
  };

  template <class T>
  static T Parse(const Answer& answer, const Read<T>& read) {
    pugi::xml_document document = ParseAnswer(answer);
    return read(document.document_element());
  }

  template <class T>
  Task<driver::cloud::api::Page<T>> ReadPage(Query query, Read<std::vector<T>> read, std::string next) {
    if (!next.empty()) query.Add("NextToken", next);
    Answer answer = co_await Send(std::move(query));
    driver::cloud::api::Page<T> page;
    page.bytes = answer.body.size();
    auto parse = [answer = std::move(answer), read] {
      pugi::xml_document document = ParseAnswer(answer);
      PageAnswer<T> result{read(document.document_element()), NextToken(document.document_element())};
      return result;
    };
    PageAnswer<T> result;
    if (page.bytes <= kParseHere) {
      result = parse();
    } else {
      result = co_await OnBlockingPool(pool_, std::move(parse));
    }
    page.items = std::move(result.items);
    page.next = std::move(result.next);
    co_return page;
  }

  Task<Answer> Send(Query query);
  std::string Describe(const Query& query) const;
  static pugi::xml_document ParseAnswer(const Answer& answer);
  static std::string NextToken(const pugi::xml_node& root);

  BlockingPool& pool_;
  const Account& account_;
  driver::cloud::api::ApiClient client_;
};

// Reads a refusal of a service that speaks JSON: {"__type": "prefix#Code", "Message": "..."},
// driver-aws.md 5.2.
driver::cloud::api::Fault ReadJsonFault(int status, std::string_view body);
// "com.amazon.coral.service#AccessDeniedException:http://..." without what is around the code.
std::string CodeOfType(std::string type);

// The limits of an account, from the service that has them (driver-aws.md 5.2).
class ServiceQuotas {
 public:
  // `rate`: calls per second; 0: unlimited. Everything outlives it.
  ServiceQuotas(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
                RequestSigner& signer, log::Logger logger, double rate,
                driver::cloud::api::CallMetrics metrics);

  // All of a service, by code, in the units of the service. "ec2": virtual CPUs; "ebs": TiB, and operations
  // per second. Errors: those of ApiClient::CallJson.
  Task<std::map<std::string, double>> List(std::string service);

 private:
  using Quota = std::pair<std::string, double>;
  Task<driver::cloud::api::Page<Quota>> ReadPage(std::string service, std::string next);

  const Account& account_;
  driver::cloud::api::ApiClient client_;
};

// AWS as one provider calls it: a client of each service, which all sign with the credentials of one account.
class Services {
 public:
  // `http` is used only here. What `environment` refers to outlives it, and so does `config`.
  Services(const driver::cloud::AdapterEnvironment& environment, const AwsConfig& config, Account account,
           Variables variables, std::unique_ptr<net::HttpClient> http, const log::Logger& logger);

  const std::string& region() const { return account_.region; }
  // AWS's time, as far as it is known to differ from this host's.
  WallTime Now() const { return clock_.Now(); }
  Ec2& ec2() { return ec2_; }
  Ebs& ebs() { return ebs_; }
  ServiceQuotas& quotas() { return quotas_; }
  // The bucket of `object-storage`; null: it is not configured.
  S3* s3() { return s3_ ? &*s3_ : nullptr; }

 private:
  Account account_;
  std::unique_ptr<net::HttpClient> http_;
  ServerClock clock_;
  CredentialFetcher fetcher_;
  RequestSigner::CredentialSource credentials_;
  RequestSigner ec2_signer_;
  Ec2 ec2_;
  RequestSigner quotas_signer_;
  ServiceQuotas quotas_;
  RequestSigner ebs_signer_;
  Ebs ebs_;
  RequestSigner s3_signer_;
  std::optional<S3> s3_;
};

}  // namespace nodepool::drivers::aws
