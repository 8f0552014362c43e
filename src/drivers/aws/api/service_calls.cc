#include "drivers/aws/api/service_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"
#include "driver/cloud/api/url_text.h"
#include "net/http/curl.h"
#include "net/http/http_client.h"

namespace nodepool::drivers::aws {

namespace api = driver::cloud::api;

api::ApiClient::Options ClientOptions(const Account& account, api::FaultReader read_fault,
                                      api::CallMetrics metrics, int least_repeats) {
  api::ApiClient::Options options;
  options.cloud = "AWS " + account.region;
  options.read_fault = std::move(read_fault);
  options.request_id = &RequestIdOf;
  options.remedies = RemediesOf(account);
  options.network_repeats = std::max(account.max_attempts - 1, least_repeats);
  options.server_error_repeats = options.network_repeats;
  options.metrics = std::move(metrics);
  return options;
}

std::string RequestIdOf(const net::HttpReply& answer) {
  for (const char* name : {"x-amzn-requestid", "x-amz-request-id"}) {
    const std::string& id = answer.Header(name);
    if (!id.empty()) return Excerpt(id, 100);
  }
  return "";
}

api::Remedies RemediesOf(const Account& account) {
  api::Remedies remedies;
  remedies.unknown_host = fmt::format(
      "check region-name ({}) and the AWS_ENDPOINT_URL settings: AWS has no such address, or this host's "
      "name "
      "service does not work",
      Excerpt(account.region, 50));
  remedies.no_answer =
      "check the way from this host to AWS: network, firewall, HTTPS_PROXY, the AWS_ENDPOINT_URL settings";
  remedies.odd_answer = kOddAnswer;
  return remedies;
}

Content MakeContent(std::string bytes) {
  std::string sha256 = Sha256Hex(bytes);
  return {std::move(bytes), std::move(sha256)};
}

std::string BytesOfHex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

namespace {

using driver::cloud::api::PercentEncoded;

constexpr std::string_view kS3Name = "s3";

net::Url Parsed(const std::string& text) {
  std::optional<net::Url> url = net::Url::Parse(text);
  if (!url) throw Error(Verdict::kInvalid, "an AWS service has no URL: " + net::UrlForLog(text));
  return std::move(*url);
}

// With a port that is not the scheme's.
std::string HostHeader(const net::Url& url) {
  std::string usual_port = url.scheme() == "https" ? "443" : "80";
  return Lower(url.host()) + (url.port() == usual_port ? "" : ":" + url.port());
}

std::string Decoded(std::string_view text) {
  std::string bytes;
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool is_code =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (is_code) {
      bytes += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

// The segments without ".", "..", and empty ones; what was encoded is encoded once more. Not for S3, whose
// keys may have such segments.
std::string CanonicalPath(std::string_view path) {
  std::vector<std::string> segments;
  for (const std::string& segment : Split(path, '/')) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      segments.push_back(PercentEncoded(segment));
    } else if (!segments.empty()) {
      segments.pop_back();
    }
  }
  std::string result = "/" + Join(segments, "/");
  if (path.ends_with('/') && result.size() > 1) result += '/';
  return result;
}

std::string CanonicalQuery(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> items;
  for (const std::string& item : Split(query, '&')) {
    if (item.empty()) continue;
    std::size_t equals = item.find('=');
    std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    items.emplace_back(PercentEncoded(Decoded(item.substr(0, equals))), PercentEncoded(Decoded(value)));
  }
  std::ranges::sort(items);
  std::vector<std::string> texts;
  for (const auto& [name, value] : items) texts.push_back(name + "=" + value);
  return Join(texts, "&");
}

// Without blanks at the ends, and with single blanks between the words.
std::string Folded(std::string_view value) {
  std::string folded;
  for (char c : Trim(value)) {
    bool is_blank = c == ' ' || c == '\t';
    if (!is_blank) folded += c;
    if (is_blank && !folded.ends_with(' ')) folded += ' ';
  }
  return folded;
}

std::map<std::string, std::string> SignedHeaders(const net::HttpCall& call) {
  std::map<std::string, std::string> headers{{"host", HostHeader(Parsed(call.url))}};
  for (const auto& [name, value] : call.headers) {
    std::string& text = headers[Lower(name)];
    text += (text.empty() ? "" : ",") + Folded(value);
  }
  return headers;
}

std::string SignedNames(const net::HttpCall& call) {
  std::vector<std::string> names;
  for (const auto& [name, value] : SignedHeaders(call)) names.push_back(name);
  return Join(names, ";");
}

// 20150830T123600Z
std::string BasicTime(WallTime time) {
  std::string text = Iso8601(time);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

}  // namespace

std::string CanonicalRequest(const net::HttpCall& call, const SigningScope& scope) {
  net::Url url = Parsed(call.url);
  std::map<std::string, std::string> signed_headers = SignedHeaders(call);
  std::string headers;
  for (const auto& [name, value] : signed_headers) headers += name + ":" + value + "\n";
  std::string path = scope.service == kS3Name ? std::string(url.path()) : CanonicalPath(url.path());
  auto digest = signed_headers.find(Lower(kContentDigest));
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", call.method, path, CanonicalQuery(url.query()), headers,
                     SignedNames(call),
                     digest == signed_headers.end() ? Sha256Hex(call.body) : digest->second);
}

std::string SigningKey(std::string_view secret, std::string_view date, const SigningScope& scope) {
  std::string key = KeyedDigest("AWS4" + std::string(secret), date);
  key = KeyedDigest(key, scope.region);
  key = KeyedDigest(key, scope.service);
  return KeyedDigest(key, "aws4_request");
}

net::HttpHeaders SignatureHeaders(const net::HttpCall& call, const Credentials& credentials,
                                  const SigningScope& scope, WallTime now) {
  const std::string time = BasicTime(now);
  const std::string date = time.substr(0, 8);
  net::HttpHeaders added{{"X-Amz-Date", time}};
  if (!credentials.session_token.empty())
    added.emplace_back("X-Amz-Security-Token", credentials.session_token);
  net::HttpCall whole = call;
  whole.headers.insert(whole.headers.end(), added.begin(), added.end());
  std::string where = fmt::format("{}/{}/{}/aws4_request", date, scope.region, scope.service);
  std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, where, Sha256Hex(CanonicalRequest(whole, scope)));
  std::string signature = Hex(KeyedDigest(SigningKey(credentials.secret, date, scope), to_sign));
  added.emplace_back("Authorization",
                     fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                 credentials.key_id, where, SignedNames(whole), signature));
  return added;
}

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
    clock_.CorrectAfter(refusal, name, RequestIdOf(refusal));
    credentials_.Discard(credentials);
  };
}

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

namespace {

pugi::xml_node NodeAt(pugi::xml_node node, std::initializer_list<const char*> path) {
  for (const char* name : path) node = node.child(name);
  return node;
}

// Whether the text begins as AWS's answers do: pages of proxies and logins have elements in lower case.
bool BeginsAsAnswer(std::string_view text, const pugi::xml_document& document) {
  const char* name = document.document_element().name();
  return (*name >= 'A' && *name <= 'Z') || (*name == '\0' && Trim(text).starts_with("<?xml"));
}

bool EndsTooEarly(std::string_view text, const pugi::xml_document& document) {
  if (!BeginsAsAnswer(text, document)) return false;
  std::string end = fmt::format("</{}>", document.document_element().name());
  return !Trim(text).ends_with(end);
}

}  // namespace

pugi::xml_document ParseXml(std::string_view text, std::string_view call, std::string_view request_id) {
  pugi::xml_document document;
  pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (result && document.document_element()) return document;
  std::string message =
      EndsTooEarly(text, document)
          ? fmt::format("{}: the answer is XML that ends in the middle, after {} bytes", call, text.size())
          : fmt::format("{} was answered with something that is no XML: {}", call,
                        driver::cloud::api::FaultText(text.substr(0, 500)));
  throw Error(Verdict::kRetry, WithRequestId(fmt::format("{}; {}", message, kOddAnswer), request_id));
}

std::string TextAt(const pugi::xml_node& node, std::initializer_list<const char*> path) {
  return NodeAt(node, path).text().get();
}

int NumberAt(const pugi::xml_node& node, std::initializer_list<const char*> path) {
  return NodeAt(node, path).text().as_int();
}

std::vector<pugi::xml_node> Items(const pugi::xml_node& node, const char* list) {
  std::vector<pugi::xml_node> items;
  for (const pugi::xml_node& item : node.child(list).children("item")) items.push_back(item);
  return items;
}

namespace {

using Codes = api::CodeSet;

const Codes kThrottling = {"Throttling",
                           "ThrottlingException",
                           "ThrottledException",
                           "RequestThrottledException",
                           "RequestThrottled",
                           "TooManyRequestsException",
                           "RequestLimitExceeded",
                           "EC2ThrottledException",
                           "BandwidthLimitExceeded",
                           "ProvisionedThroughputExceededException",
                           "SlowDown"};

const Codes kQuota = {"VolumeLimitExceeded",           "HostLimitExceeded",
                      "InstanceLimitExceeded",         "VcpuLimitExceeded",
                      "MaxSpotInstanceCountExceeded",  "SpotInstanceCountExceeded",
                      "MaxIOPSLimitExceeded",          "NetworkInterfaceLimitExceeded",
                      "PrivateIpAddressLimitExceeded", "InsufficientFreeAddressesInSubnet",
                      "AddressLimitExceeded"};

const Codes kCapacity = {
    "InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
    "InsufficientCapacityOnHost",   "SpotMaxPriceTooLow",       "UnfulfillableCapacity",
    "SpotInstanceTermination",      "SpotInstanceShutdown"};

const Codes kSignature = {"AuthFailure",
                          "InvalidClientTokenId",
                          "SignatureDoesNotMatch",
                          "InvalidAccessKeyId",
                          "ExpiredToken",
                          "ExpiredTokenException",
                          "RequestExpired",
                          "RequestTimeTooSkewed",
                          "InvalidSignatureException",
                          "RequestInTheFuture",
                          "UnrecognizedClientException"};

const Codes kForbidden = {"UnauthorizedOperation", "AccessDenied",        "AccessDeniedException",
                          "OptInRequired",         "PendingVerification", "Blocked"};

const Codes kTransient = {"InternalError", "InternalFailure", "InternalServerException", "Unavailable",
                          "ServiceUnavailable"};

const Codes kBadSettings = {"InvalidSubnet",    "InvalidParameterValue",     "InvalidParameterCombination",
                            "InvalidParameter", "InvalidBlockDeviceMapping", "InvalidInstanceType",
                            "MissingParameter", "UnknownParameter",          "UnsupportedOperation",
                            "Unsupported",      "TagLimitExceeded",          "VPCIdNotSpecified"};

// "Server.InsufficientInstanceCapacity" and "Client.VolumeLimitExceeded" are reasons of an instance's end.
std::string_view WithoutSide(std::string_view code) {
  for (std::string_view side : {"Server.", "Client."}) {
    if (code.starts_with(side)) return code.substr(side.size());
  }
  return code;
}

// Signatures are of the account, not of the call: the next one may be signed with other credentials. Lack of
// capacity may have the status 500.
const std::vector<api::FaultRule>& Rules() {
  static const std::vector<api::FaultRule> rules = {
      {0, kThrottling, Verdict::kRateLimited},
      {0, kQuota, Verdict::kQuota},
      {0, kTransient, Verdict::kRetry},
      {0, kCapacity, Verdict::kFail},
      {0, {"ExpiredToken", "ExpiredTokenException"}, Verdict::kRetry, "renew the credentials"},
      {0,
       {"RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture"},
       Verdict::kRetry,
       "renew the credentials, or correct this host's clock"},
      {0, kSignature, Verdict::kRetry, "check the key, and that it belongs to this region"},
      {0, {"OptInRequired"}, Verdict::kInvalid, "accept the terms of the image in the AWS Marketplace"},
      {0, kForbidden, Verdict::kInvalid, "give the key's user or role this right"},
      {0, {"*.NotFound", "NoSuch*"}, Verdict::kNotFound},
  };
  return rules;
}

// In one line; without the encoded details of a missing permission, which are long and different each time.
std::string MessageText(std::string text) {
  if (std::size_t blob = text.find("Encoded authorization failure"); blob != std::string::npos)
    text.resize(blob);
  return api::OneLine(std::move(text));
}

}  // namespace

api::Fault FaultOf(int status, std::string code, std::string message) {
  message = MessageText(std::move(message));
  std::string text = message.empty() ? code : code + ": " + message;
  bool refuses_signature = kSignature.contains(code);
  api::Fault fault = api::Classify(Rules(), status, std::move(code), std::move(text));
  fault.refuses_signature = refuses_signature;
  return fault;
}

api::Fault ReadFault(int status, std::string_view body) {
  api::Fault fault;
  pugi::xml_document document;
  bool is_xml = document.load_buffer(body.data(), body.size()) && document.document_element();
  pugi::xml_node root = document.document_element();
  pugi::xml_node error = root.child("Error");
  if (!error) error = root.child("Errors").child("Error");
  if (!error && std::string_view(root.name()) == "Error") error = root;
  if (!is_xml || !error) {
    fault.verdict = api::VerdictOfStatus(status);
    fault.text = api::FaultText(body);
    return fault;
  }
  fault = FaultOf(status, Excerpt(TextAt(error, {"Code"}), 100), TextAt(error, {"Message"}));
  fault.request_id = TextAt(root, {"RequestID"});
  if (fault.request_id.empty()) fault.request_id = TextAt(root, {"RequestId"});
  fault.request_id = Excerpt(fault.request_id, 100);
  return fault;
}

bool MeansNoCapacity(std::string_view code) { return kCapacity.contains(WithoutSide(code)); }

bool MeansThrottled(std::string_view code) { return kThrottling.contains(code); }

bool ConcernsOneCandidate(std::string_view code) {
  return code == "Unsupported" || code == "InsufficientFreeAddressesInSubnet" ||
         code == "UnauthorizedOperation";
}

bool MeansQuota(std::string_view code) { return kQuota.contains(WithoutSide(code)); }

bool MeansBadSettings(std::string_view code) {
  // An image may appear, and an instance is not a setting.
  if (code.starts_with("InvalidAMIID.") || code.starts_with("InvalidInstanceID.")) return false;
  bool names_nothing = code.ends_with(".NotFound") || code.ends_with(".Malformed");
  return names_nothing || kBadSettings.contains(code) || code.starts_with("InvalidTag");
}

}  // namespace nodepool::drivers::aws
