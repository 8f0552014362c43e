#pragma once

#include "driver/cloud/api/credential_source.h"
#include "driver/cloud/api/signer.h"
#include "drivers/aws/api/server_clock.h"
#include "drivers/aws/api/signature.h"

namespace nodepool::drivers::aws {

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
