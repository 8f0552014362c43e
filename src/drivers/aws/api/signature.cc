#include "drivers/aws/api/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "base/digest.h"
#include "base/encoding.h"
#include "base/error.h"
#include "base/text.h"
#include "base/time_text.h"
#include "driver/cloud/api/url_text.h"
#include "drivers/aws/api/client_options.h"
#include "net/http/http_client.h"
#include "net/http/url.h"

namespace nodepool::drivers::aws {

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

}  // namespace nodepool::drivers::aws
