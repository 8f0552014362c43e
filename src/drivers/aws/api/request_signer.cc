#include "drivers/aws/api/request_signer.h"

#include <fmt/format.h>

#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

namespace {

// As operators know the call: the action, or what is called.
std::string ActionIn(const net::HttpCall& call) {
  constexpr std::string_view kAction = "Action=";
  if (call.body.starts_with(kAction)) {
    return call.body.substr(kAction.size(), call.body.find('&') - kAction.size());
  }
  return fmt::format("{} {}", call.method, net::UrlForLog(call.url));
}

}  // namespace

Task<RequestSigner::Renew> RequestSigner::Sign(net::HttpCall& call) {
  std::shared_ptr<const Credentials> credentials = co_await credentials_.Get();
  for (auto& header : SignatureHeaders(call, *credentials, scope_, clock_.Now())) {
    call.headers.push_back(std::move(header));
  }
  co_return [this, credentials, name = ActionIn(call)](const net::HttpReply& refusal) {
    clock_.CorrectAfter(refusal, name);
    credentials_.Discard(credentials);
  };
}

}  // namespace nodepool::drivers::aws
