#include "drivers/aws/api/form_call.h"

namespace nodepool::drivers::aws {

net::HttpCall FormCall(const std::string& url, const Query& query, const char* version,
                       std::shared_ptr<const net::TlsSettings> tls) {
  net::HttpCall call;
  call.method = "POST";
  call.url = url + "/";
  call.may_be_repeated = true;
  call.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
  call.body = query.Body(version);
  call.timeouts.connect = std::chrono::seconds(60);
  call.tls = std::move(tls);
  return call;
}

}  // namespace nodepool::drivers::aws
