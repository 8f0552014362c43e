#include "net/http/curl.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cassert>
#include <cctype>
#include <chrono>

namespace nodepool::net {

namespace asio = boost::asio;

std::optional<Url> Url::Parse(const std::string& text) {
  Url url;
  if (curl_url_set(url.handle_.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return std::nullopt;
  return url;
}

std::string Url::Part(CURLUPart which, unsigned flags) const {
  char* text = nullptr;
  if (curl_url_get(handle_.get(), which, &text, flags) != CURLUE_OK) return "";
  std::string part(text);
  curl_free(text);
  return part;
}

void Url::RemoveSecrets() {
  for (CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    curl_url_set(handle_.get(), part, nullptr, 0);
  }
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      encoded += static_cast<char>(c);
    } else {
      encoded += fmt::format("%{:02X}", c);
    }
  }
  return encoded;
}

// A socket of libcurl in the loop. It watches a copy of the descriptor, so that libcurl may close
// its own at any time.
class CurlMulti::Socket : public std::enable_shared_from_this<CurlMulti::Socket> {
 public:
  Socket(CurlMulti& multi, curl_socket_t fd)
      : multi_(&multi), fd_(fd), descriptor_(multi.loop_.context(), ::fcntl(fd, F_DUPFD_CLOEXEC, 0)) {}

  void Want(int what) {
    wanted_ = what;
    Wait(asio::posix::stream_descriptor::wait_read, CURL_POLL_IN, CURL_CSELECT_IN);
    Wait(asio::posix::stream_descriptor::wait_write, CURL_POLL_OUT, CURL_CSELECT_OUT);
  }

  void Close() {
    multi_ = nullptr;
    boost::system::error_code ignored;
    descriptor_.close(ignored);
  }

 private:
  using WaitType = asio::posix::stream_descriptor::wait_type;

  void Wait(WaitType type, int poll, int event) {
    if ((wanted_ & poll) == 0 || (waiting_ & poll) != 0) return;
    waiting_ |= poll;
    descriptor_.async_wait(
        type, [self = shared_from_this(), type, poll, event](const boost::system::error_code& error) {
          self->waiting_ &= ~poll;
          if (error || self->multi_ == nullptr) return;
          if ((self->wanted_ & poll) == 0) return;
          self->multi_->Act(self->fd_, event);
          if (self->multi_ != nullptr) self->Wait(type, poll, event);
        });
  }

  CurlMulti* multi_;  // null: closed
  curl_socket_t fd_;
  asio::posix::stream_descriptor descriptor_;
  int wanted_ = 0;
  int waiting_ = 0;
};

CurlMulti::CurlMulti(Loop& loop, std::size_t answer_space) : loop_(loop), answer_space_(answer_space) {
  static const CURLcode is_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)is_ready;
  multi_ = curl_multi_init();
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlMulti::OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlMulti::OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

CurlMulti::~CurlMulti() {
  assert(transfers_.empty());
  curl_multi_cleanup(multi_);
  for (auto& [fd, socket] : sockets_) socket->Close();
  if (timer_) loop_.clock().CancelTimer(*timer_);
}

void CurlMulti::Add(CURL* easy, OnDone done) {
  transfers_.emplace(easy, std::move(done));
  curl_multi_add_handle(multi_, easy);
}

void CurlMulti::Remove(CURL* easy) {
  if (transfers_.erase(easy) > 0) curl_multi_remove_handle(multi_, easy);
}

bool CurlMulti::TakeSpace(std::size_t bytes) {
  if (bytes > answer_space_) return false;
  answer_space_ -= bytes;
  return true;
}

int CurlMulti::OnSocket(CURL*, curl_socket_t fd, int what, void* self, void*) {
  try {
    static_cast<CurlMulti*>(self)->Watch(fd, what);
  } catch (...) {
    return -1;  // no descriptor is free: libcurl fails the transfer
  }
  return 0;
}

void CurlMulti::Watch(curl_socket_t fd, int what) {
  auto found = sockets_.find(fd);
  if (what == CURL_POLL_REMOVE) {
    if (found == sockets_.end()) return;
    found->second->Close();
    sockets_.erase(found);
    return;
  }
  if (found == sockets_.end()) found = sockets_.emplace(fd, std::make_shared<Socket>(*this, fd)).first;
  found->second->Want(what);
}

int CurlMulti::OnTimer(CURLM*, long timeout_ms, void* object) {
  auto* self = static_cast<CurlMulti*>(object);
  if (self->timer_) self->loop_.clock().CancelTimer(*std::exchange(self->timer_, std::nullopt));
  if (timeout_ms < 0) return 0;
  SteadyTime when = self->loop_.SteadyNow() + std::chrono::milliseconds(timeout_ms);
  self->timer_ = self->loop_.clock().CallAt(when, [self] {
    self->timer_.reset();
    self->Act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

void CurlMulti::Act(curl_socket_t fd, int events) {
  int running = 0;
  curl_multi_socket_action(multi_, fd, events, &running);
  TakeFinished();
}

void CurlMulti::TakeFinished() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    CURLcode result = message->data.result;
    auto found = transfers_.find(easy);
    if (found == transfers_.end()) continue;
    OnDone done = std::move(found->second);
    transfers_.erase(found);
    curl_multi_remove_handle(multi_, easy);
    done(result);
  }
}

}  // namespace nodepool::net
