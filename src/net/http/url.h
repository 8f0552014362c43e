#pragma once

#include <curl/urlapi.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace nodepool::net {

// A URL in parts, as libcurl reads it.
class Url {
 public:
  // nullopt: it is not a URL.
  static std::optional<Url> Parse(const std::string& text);

  // As written in the URL; empty where it is absent.
  std::string scheme() const { return Part(CURLUPART_SCHEME); }
  std::string host() const { return Part(CURLUPART_HOST); }
  // The scheme's usual one where it is absent.
  std::string port() const { return Part(CURLUPART_PORT, CURLU_DEFAULT_PORT); }
  std::string path() const { return Part(CURLUPART_PATH); }
  std::string query() const { return Part(CURLUPART_QUERY); }  // without "?"
  std::string text() const { return Part(CURLUPART_URL); }

  void SetHost(const std::string& host) { curl_url_set(handle_.get(), CURLUPART_HOST, host.c_str(), 0); }

  // Removes the parts that may hold a secret: user, password, options, query and fragment.
  void RemoveSecrets();

 private:
  struct Deleter {
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
  };

  Url() : handle_(curl_url()) {}
  std::string Part(CURLUPart which, unsigned flags = 0) const;

  std::unique_ptr<CURLU, Deleter> handle_;
};

// `text` as one component of a path or query: all but letters, digits and "-_.~" as %XX.
std::string PercentEncoded(std::string_view text);

}  // namespace nodepool::net
