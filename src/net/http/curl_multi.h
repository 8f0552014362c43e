#pragma once

#include <curl/curl.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "async/loop.h"

namespace nodepool::net {

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
