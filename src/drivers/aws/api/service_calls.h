#pragma once

#include <initializer_list>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "driver/cloud/api/api_client.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/credentials.h"
#include "drivers/aws/credentials/account.h"
#include "drivers/aws/credentials/credentials.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

using driver::cloud::api::CodeOf;

// How often a call that carries data is repeated at least after a passing fault: with the pauses of the
// client this is about five minutes, which is little beside the hours of an upload.
inline constexpr int kDataRepeats = 12;

// What the clients of AWS's services have in common. `least_repeats`: after passing faults, in place of what
// the account says if that is less.
driver::cloud::api::ApiClient::Options ClientOptions(const Account& account,
                                                     driver::cloud::api::FaultReader read_fault,
                                                     driver::cloud::api::CallMetrics metrics,
                                                     int least_repeats = 0);

// AWS's id of the call, in a header of every answer; empty: another server answered.
std::string RequestIdOf(const net::HttpReply& answer);

// What an operator does about calls without a usable answer.
driver::cloud::api::Remedies RemediesOf(const Account& account);

// Bytes to send, with their digest, so that the loop's thread hashes no large content.
struct Content {
  std::string bytes;
  std::string sha256;  // hex
};

// Hashes the bytes; call it off the loop where there are many.
Content MakeContent(std::string bytes);

// The bytes that `hex` stands for, two digits each.
std::string BytesOfHex(const std::string& hex);

// The SHA-256 of a call's body in hex; S3 wants it with each call.
inline constexpr const char* kContentDigest = "X-Amz-Content-SHA256";

// Where a signature counts.
struct SigningScope {
  std::string region;
  std::string service;
};

// The headers that sign `call`, which is otherwise complete, by Signature Version 4 (driver-aws.md 4):
// X-Amz-Date, X-Amz-Security-Token of temporary credentials, Authorization. All headers of the call are
// signed. A call with the header kContentDigest says there what its body is; the body is not read then.
net::HttpHeaders SignatureHeaders(const net::HttpCall& call, const Credentials& credentials,
                                  const SigningScope& scope, WallTime now);

// The steps, for tests.
std::string CanonicalRequest(const net::HttpCall& call, const SigningScope& scope);
std::string SigningKey(std::string_view secret, std::string_view date, const SigningScope& scope);

using driver::cloud::api::ServerClock;

// Signs the calls of one service.
class RequestSigner : public driver::cloud::api::Signer {
 public:
  using CredentialSource = driver::cloud::api::CredentialSource<Credentials>;

  // Everything outlives the signer.
  RequestSigner(ServerClock& clock, CredentialSource& credentials, SigningScope scope)
      : clock_(clock), credentials_(credentials), scope_(std::move(scope)) {}

  Task<Renew> Sign(net::HttpCall& call) override;

 private:
  ServerClock& clock_;
  CredentialSource& credentials_;
  SigningScope scope_;
};

// A call of a service with the query protocol (driver-aws.md 5.1).
class Query {
 public:
  explicit Query(std::string action) : action_(std::move(action)) {}

  const std::string& action() const { return action_; }
  const std::vector<std::pair<std::string, std::string>>& parameters() const { return parameters_; }

  Query& Add(std::string name, std::string value);
  Query& Add(std::string name, const char* value) { return Add(std::move(name), std::string(value)); }
  Query& Add(std::string name, int value) { return Add(std::move(name), std::to_string(value)); }
  Query& Add(std::string name, bool value) { return Add(std::move(name), value ? "true" : "false"); }
  // A list: InstanceId.1, InstanceId.2 ...
  Query& AddList(const std::string& name, const std::vector<std::string>& values);
  // One more condition for what a Describe lists.
  Query& AddFilter(std::string name, const std::vector<std::string>& values);

  // The body of the POST.
  std::string Body(const char* version) const;

  // Lists and gets; anything else changes something.
  bool reads() const { return action_.starts_with("Describe") || action_.starts_with("Get"); }
  // Ends or removes something.
  bool frees() const {
    for (const char* verb : {"Delete", "Release", "Terminate"}) {
      if (action_.starts_with(verb)) return true;
    }
    return false;
  }

 private:
  std::string action_;
  std::vector<std::pair<std::string, std::string>> parameters_;
  int filters_ = 0;
};

// The POST of a query to a service at `url`. It may be repeated: what creates something has a client token,
// the other calls read, get credentials, or say how things shall be.
net::HttpCall FormCall(const std::string& url, const Query& query, const char* version,
                       std::shared_ptr<const net::TlsSettings> tls);

// What an operator does about an answer that does not come from AWS, or not whole.
inline constexpr const char* kOddAnswer = "check that the AWS_ENDPOINT_URL settings and proxies lead to AWS";

// Reads `text`, the answer to `call`. Error(kRetry), with AWS's id of the call: it is no XML, or ends too
// early.
pugi::xml_document ParseXml(std::string_view text, std::string_view call, std::string_view request_id = "");

// The text of the element at the end of the path; empty: there is none.
std::string TextAt(const pugi::xml_node& node, std::initializer_list<const char*> path);
// 0: there is no number.
int NumberAt(const pugi::xml_node& node, std::initializer_list<const char*> path);

// The entries of a list: <instancesSet><item/><item/></instancesSet>.
std::vector<pugi::xml_node> Items(const pugi::xml_node& node, const char* list);

// Reads a refusal of a service with the query protocol: EC2's
// <Response><Errors><Error><Code/><Message/></Error></Errors><RequestID/></Response> and STS's
// <ErrorResponse><Error><Code/>..., and S3's <Error><Code/>... (driver-aws.md 5.1, 5.4). Its verdict comes
// from the code (driver-aws.md 18).
driver::cloud::api::Fault ReadFault(int status, std::string_view body);

// The same of a refusal whose parts were read already.
driver::cloud::api::Fault FaultOf(int status, std::string code, std::string message);

// --- What codes mean, wherever they appear: in refusals, and as the reason why an instance ended
// ------------- There is no machine of that kind at the moment.
bool MeansNoCapacity(std::string_view code);
// A candidate cannot be made that others of the label may replace: its zone has no such type, its subnet no
// address, or the account's rules forbid it.
bool ConcernsOneCandidate(std::string_view code);
// There were too many calls.
bool MeansThrottled(std::string_view code);
// A limit of the account or of a subnet has been reached.
bool MeansQuota(std::string_view code);
// The same launch would be refused again: its settings name something that does not exist, or do not go
// together.
bool MeansBadSettings(std::string_view code);

}  // namespace nodepool::drivers::aws
