#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <string>

#include "async/event.h"
#include "async/loop.h"
#include "net/http/curl_multi.h"
#include "net/http/http_client.h"
#include "net/http/upload_reader.h"

namespace nodepool::net {

// One exchange with a server: a handle of libcurl, what it calls, and its time-outs.
// Destroying it abandons the exchange.
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
  // Where the answer sends us, or empty.
  std::string Redirect() const;

 private:
  static std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t OnUpload(char* to, std::size_t size, std::size_t count, void* self);
  static int OnSeek(void* self, curl_off_t offset, int origin);

  void Configure(const std::string& url, const std::string& user_agent);
  void ConfigureTls();
  void ConfigureBody();
  bool AddHeaderLine(std::string_view line);
  void ResumeUpload();

  void WatchTime();
  // Which limit is in force at the moment, from the last sign of life on.
  Duration PatienceNow() const;
  void GiveUp(std::string why);
  void ThrowFailure() const;

  Loop& loop_;
  CurlMulti& multi_;
  std::shared_ptr<const HttpCall> call_;
  std::string url_for_log_;
  std::unique_ptr<UploadReader> upload_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  char error_text_[CURL_ERROR_SIZE] = {};
  HttpReply reply_;
  std::size_t header_bytes_ = 0;
  bool has_header_ = false;
  bool is_paused_ = false;  // libcurl waits for the file
  SteadyTime started_;
  SteadyTime last_sign_;
  std::optional<Clock::TimerId> timer_;
  std::optional<CURLcode> result_;
  std::string given_up_;  // why, when it was us
  Verdict given_up_verdict_ = Verdict::kRetry;
  Event progress_;  // finished, or the file may be read on
};

}  // namespace nodepool::net
