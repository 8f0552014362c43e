#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "driver/cloud/api/credential_source.h"
#include "driver/cloud/api/server_clock.h"
#include "driver/cloud/api/signer.h"
#include "drivers/aws/credentials/credentials.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

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

}  // namespace nodepool::drivers::aws
