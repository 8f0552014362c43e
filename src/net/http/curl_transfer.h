#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "net/http/curl.h"
#include "net/http/http_client.h"

namespace nodepool::net {

// One exchange with a server: a handle of libcurl, its callbacks, and its time-outs. Destroying it
// abandons the exchange.
class CurlTransfer {
 public:
  CurlTransfer(Loop& loop, CurlMulti& multi, std::shared_ptr<const HttpCall> call, const std::string& url,
               const std::string& user_agent, std::unique_ptr<UploadReader> upload);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  // Ends when the answer is complete; throws HttpError.
  Task<> Run();

  HttpReply TakeReply() { return std::move(reply_); }
  // The target of the answer's redirection, or empty.
  std::string Redirect() const;

 private:
  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t OnUpload(char* to, std::size_t size, std::size_t count, void* self);
  static int OnSend(void* self, char* address, char* own_address, int port, int own_port);

  void Configure(const std::string& url, const std::string& user_agent);
  void ConfigureHeaders();
  void ConfigureTls();
  void ConfigureServerName(const std::string& url);
  void ConfigureBody();
  void ConfigureRepetition();
  bool AddHeaderLine(std::string_view line);
  bool AddBody(std::string_view bytes);
  int Status() const;
  bool Refuse(std::string why, Verdict verdict = Verdict::kFail);
  void ResumeUpload();

  void WatchTime();
  // The time-out in force at the moment, counted from the last progress.
  Duration QuietLimit() const;
  void GiveUp(std::string why);
  void ThrowFailure() const;

  Loop& loop_;
  CurlMulti& multi_;
  std::shared_ptr<const HttpCall> call_;
  std::string url_for_log_;
  std::unique_ptr<UploadReader> upload_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  curl_slist* connect_to_ = nullptr;
  std::string host_;  // the header, where libcurl's own would be wrong
  char error_text_[CURL_ERROR_SIZE] = {};
  HttpReply reply_;
  std::size_t header_bytes_ = 0;
  std::size_t shared_bytes_ = 0;  // of the space for all answers
  bool is_sent_ = false;          // its first byte, at least
  bool has_header_ = false;
  bool is_paused_ = false;  // libcurl waits for the file
  SteadyTime started_;
  SteadyTime last_sign_;
  std::optional<Clock::TimerId> timer_;
  std::optional<CURLcode> result_;
  std::string given_up_;  // why this side abandoned it; empty: it did not
  Verdict given_up_verdict_ = Verdict::kRetry;
  Event progress_;  // finished, or more of the file may be read
};

}  // namespace nodepool::net
