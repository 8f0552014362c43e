#include "drivers/aws/credentials/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/aws/credentials/credentials.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

namespace {

bool IsTrue(const std::string& text) { return Lower(text) == "true" || text == "1"; }

std::string RegionOf(const Profiles& profiles, const Variables& variables,
                     const std::optional<std::string>& configured, const std::string& profile) {
  std::string region = configured.value_or("");
  if (region.empty()) region = VariableIn(variables, "AWS_DEFAULT_REGION");
  if (region.empty()) region = VariableIn(variables, "AWS_REGION");
  if (region.empty()) region = profiles.Text(profile, "region");
  if (region.empty()) {
    throw Error(Verdict::kInvalid,
                fmt::format("there is no AWS region: set region-name, AWS_DEFAULT_REGION, or "
                            "region of profile {} in {}",
                            Excerpt(profile), profiles.config_path));
  }
  // It becomes part of host names.
  bool is_good = std::ranges::all_of(
      region, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  if (!is_good)
    throw Error(Verdict::kInvalid, fmt::format("{} is no name of an AWS region", Excerpt(region)));
  return region;
}

// What the environment and the files say in place of the service's own address; empty: nothing.
std::string Override(const Profiles& profiles, const Variables& variables, const std::string& profile,
                     const ServiceNames& service) {
  bool is_off = IsTrue(VariableIn(variables, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) ||
                IsTrue(profiles.Text(profile, "ignore_configured_endpoint_urls"));
  if (is_off) return "";
  std::string url = VariableIn(variables, std::string("AWS_ENDPOINT_URL_") + service.variable);
  if (url.empty()) url = VariableIn(variables, "AWS_ENDPOINT_URL");
  if (!url.empty()) return url;
  auto block = profiles.config.find("services " + profiles.Text(profile, "services"));
  if (block != profiles.config.end()) {
    auto own = block->second.find(service.setting);
    if (own != block->second.end() && own->second.block.contains("endpoint_url")) {
      return own->second.block.at("endpoint_url");
    }
  }
  return profiles.Text(profile, "endpoint_url");
}

std::string UrlOf(const Profiles& profiles, const Variables& variables, const Account& account,
                  const ServiceNames& service) {
  std::string url = Override(profiles, variables, account.profile, service);
  if (url.empty()) {
    const char* suffix = account.region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
    return fmt::format("https://{}.{}.{}", service.name, account.region, suffix);
  }
  return driver::cloud::api::ServiceUrl(std::move(url),
                                        fmt::format("the endpoint of AWS's service {}", service.name));
}

// An address of one's own rarely has names for buckets.
bool PutsBucketInPath(const Profiles& profiles, const Variables& variables, const std::string& profile) {
  const IniSection* settings = profiles.InConfig(profile);
  if (settings != nullptr && settings->contains("s3")) {
    const auto& block = settings->at("s3").block;
    auto style = block.find("addressing_style");
    if (style != block.end()) return style->second == "path";
  }
  return !Override(profiles, variables, profile, kS3).empty();
}

int MaxAttempts(const Profiles& profiles, const Variables& variables, const std::string& profile) {
  std::string text = VariableIn(variables, "AWS_MAX_ATTEMPTS");
  if (text.empty()) text = profiles.Text(profile, "max_attempts");
  int attempts = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), attempts);
  bool is_number = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return is_number ? std::clamp(attempts, 1, 100) : Account().max_attempts;
}

}  // namespace

Account ResolveAccount(const Profiles& profiles, const Variables& variables,
                       const std::optional<std::string>& region, const std::optional<std::string>& profile) {
  Account account;
  account.profile = ChooseProfile(profiles, variables, profile);
  account.region = RegionOf(profiles, variables, region, account.profile);
  account.ec2_url = UrlOf(profiles, variables, account, kEc2);
  account.quotas_url = UrlOf(profiles, variables, account, kServiceQuotas);
  account.sts_url = UrlOf(profiles, variables, account, kSts);
  account.s3_url = UrlOf(profiles, variables, account, kS3);
  account.ebs_url = UrlOf(profiles, variables, account, kEbs);
  account.puts_bucket_in_path = PutsBucketInPath(profiles, variables, account.profile);
  account.max_attempts = MaxAttempts(profiles, variables, account.profile);
  std::string authorities = VariableIn(variables, "AWS_CA_BUNDLE");
  if (authorities.empty()) authorities = profiles.Text(account.profile, "ca_bundle");
  if (!authorities.empty()) {
    account.tls = std::make_shared<const net::TlsSettings>(net::TlsSettings{.ca_path = authorities});
  }
  return account;
}

}  // namespace nodepool::drivers::aws
