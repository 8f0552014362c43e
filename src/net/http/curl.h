#pragma once

#include <curl/curl.h>
#include <curl/urlapi.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/loop.h"

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

// libcurl's multi interface on the loop: libcurl says which sockets and which timer it waits for,
// and is called when they are ready.
class CurlMulti {
 public:
  // `answer_space`: in bytes, for TakeSpace().
  CurlMulti(Loop& loop, std::size_t answer_space);
  ~CurlMulti();  // requires that no transfer is left
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  using OnDone = std::function<void(CURLcode)>;
  // Starts a transfer; `done` is called from the loop when libcurl has finished it.
  // Neither may be called from within a callback of libcurl.
  void Add(CURL* easy, OnDone done);
  // Abandons it, if it is not finished; `done` is not called then.
  void Remove(CURL* easy);

  // Space for long answers, which all transfers share. False: there is not so much left.
  bool TakeSpace(std::size_t bytes);
  void ReturnSpace(std::size_t bytes) { answer_space_ += bytes; }

 private:
  class Socket;

  static int OnSocket(CURL* easy, curl_socket_t fd, int what, void* self, void* socket);
  static int OnTimer(CURLM* multi, long timeout_ms, void* self);

  void Watch(curl_socket_t fd, int what);
  void Act(curl_socket_t fd, int events);
  void TakeFinished();

  Loop& loop_;
  std::size_t answer_space_;
  CURLM* multi_;
  std::map<curl_socket_t, std::shared_ptr<Socket>> sockets_;
  std::map<CURL*, OnDone> transfers_;
  std::optional<Clock::TimerId> timer_;
};

}  // namespace nodepool::net
