#pragma once

#include <map>
#include <string>

#include "driver/cloud/api/api_client.h"
#include "drivers/aws/api/service_calls.h"
#include "drivers/aws/credentials/account.h"

namespace nodepool::drivers::aws {

// A snapshot whose blocks are being written.
struct NewSnapshot {
  std::string id;
  int block_size = 0;  // bytes
};

// The EBS direct APIs, with which a snapshot is written block by block (driver-aws.md 15.5). Passing faults
// are repeated for some minutes. Errors: those of ApiClient::Call.
class Ebs {
 public:
  // Everything outlives it.
  Ebs(Loop& loop, BlockingPool& pool, Random& random, net::HttpClient& http, const Account& account,
      RequestSigner& signer, log::Logger logger, driver::cloud::api::CallMetrics metrics);

  // `size` in GiB. Calls with the same token make one snapshot.
  Task<NewSnapshot> Begin(int size, std::map<std::string, std::string> tags, std::string token);
  // Error(kRetry): AWS received something else than what was sent, three times.
  Task<> PutBlock(std::string snapshot, int index, Content content);
  // All blocks are written. `sha256`: of the digests of the written blocks, in their order, in hex; empty:
  // not known. Returns the snapshot's state: "pending", "completed" or "error".
  Task<std::string> Complete(std::string snapshot, int written_blocks, std::string sha256);

 private:
  driver::cloud::api::ApiRequest Request(const char* name, const char* method, const std::string& path,
                                         Content content) const;
  Task<std::string> PutOnce(std::string snapshot, int index, const Content& content);

  Loop& loop_;
  const Account& account_;
  driver::cloud::api::ApiClient client_;
};

// Reads a refusal, whose code is in a header or in the body.
driver::cloud::api::Fault ReadEbsFault(const net::HttpReply& refusal);

}  // namespace nodepool::drivers::aws
