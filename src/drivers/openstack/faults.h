#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace nodepool::drivers::openstack {

// A service refused a call. The verdict says what to do; the message keeps the
// cloud's own words (driver-openstack.md 6.5, 7.6).
class ApiError : public Error {
 public:
  ApiError(Verdict verdict, std::string message, int status)
      : Error(verdict, std::move(message)), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

// `call` names what was asked: "POST compute /servers".
ApiError MapFault(std::string_view call, int status, std::string_view body);

// What the body of a refusal says: the messages of its JSON, else its text without
// tags; cut to a line.
std::string FaultText(std::string_view body);

// Whether the cloud's words mean that a quota is used up (driver-openstack.md 7.6, 7.7).
bool SpeaksOfQuota(std::string_view text);

// The status of an ApiError, else 0.
int StatusOf(const std::exception_ptr& error);

}  // namespace nodepool::drivers::openstack
