#include "drivers/aws/api/query.h"

#include <fmt/format.h>

#include "driver/cloud/api/url_text.h"

namespace nodepool::drivers::aws {

Query& Query::Add(std::string name, std::string value) {
  parameters_.emplace_back(std::move(name), std::move(value));
  return *this;
}

Query& Query::AddList(const std::string& name, const std::vector<std::string>& values) {
  int number = 0;
  for (const std::string& value : values) Add(fmt::format("{}.{}", name, ++number), value);
  return *this;
}

Query& Query::AddFilter(std::string name, const std::vector<std::string>& values) {
  ++filters_;
  Add(fmt::format("Filter.{}.Name", filters_), std::move(name));
  return AddList(fmt::format("Filter.{}.Value", filters_), values);
}

std::string Query::Body(const char* version) const {
  using driver::cloud::api::PercentEncoded;
  std::string body = fmt::format("Action={}&Version={}", action_, version);
  for (const auto& [name, value] : parameters_) {
    body += "&" + PercentEncoded(name) + "=" + PercentEncoded(value);
  }
  return body;
}

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
