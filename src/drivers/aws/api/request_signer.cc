#include "drivers/aws/api/request_signer.h"

namespace nodepool::drivers::aws {

Task<RequestSigner::Renew> RequestSigner::Sign(net::HttpCall& call) {
  std::shared_ptr<const Credentials> credentials = co_await credentials_.Get();
  for (auto& header : SignatureHeaders(call, *credentials, scope_, clock_.Now())) {
    call.headers.push_back(std::move(header));
  }
  co_return [this, credentials](const net::HttpReply& refusal) {
    clock_.CorrectAfter(refusal);
    credentials_.Discard(credentials);
  };
}

}  // namespace nodepool::drivers::aws
