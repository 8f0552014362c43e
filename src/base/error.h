#pragma once

#include <exception>
#include <expected>
#include <string>
#include <string_view>

namespace nodepool {

// What the caller does next; never where the fault arose. Faults of the outside
// world (clouds, ZooKeeper, files) are mapped to a verdict once, at the border.
enum class Verdict {
  // Nothing was learnt about the call: no connection, no answer or one without meaning, a service that is
  // down or refuses our credentials. The same call may succeed later.
  kRetry,
  kQuota,        // No capacity now; waiting for capacity helps, repeating does not.
  kRateLimited,  // Too many calls; repeat after a pause. Nothing was learnt about the call, either.
  kNotFound,     // The thing is not there; for deletions this is success.
  kConflict,     // Another process was faster; re-read and decide again.
  kInvalid,      // The input is wrong; an operator must correct it.
  kLostSession,  // The ZooKeeper session ended: all locks are lost, stop working.
  kCancelled,    // The owner of the task cancelled it.
  kFail,         // Anything else; not worth repeating.
  kTimedOut,     // It was not done by its deadline (async/deadline.h); may succeed another time.
};

std::string_view ToString(Verdict verdict);

// The one error type of the program. `message` is written for operators and names the place and the
// remedy where there is one; it never holds a secret.
class Error : public std::exception {
 public:
  Error(Verdict verdict, std::string message);

  // The same error with "<context>: " put in front of its message.
  Error In(std::string_view context) const;

  Verdict verdict() const { return verdict_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Verdict verdict_;
  std::string message_;
};

// For calls whose failure is an ordinary answer (parsing, a lock already held).
// Everything else throws Error.
template <class T>
using Expected = std::expected<T, Error>;

// The failure of an Expected.
inline std::unexpected<Error> Unexpected(Verdict verdict, std::string message) {
  return std::unexpected<Error>(Error(verdict, std::move(message)));
}

// The verdict of any exception: an Error's own; kCancelled for an aborted Asio
// operation; kRetry for other I/O errors; else kFail.
Verdict VerdictOf(const std::exception_ptr& exception);

// The message of any exception, for a log line.
std::string MessageOf(const std::exception_ptr& exception);

// Services give each call an id, by which their operators find it. A message may name it, and then differs
// each time although it says the same; who compares messages leaves it out.

// "<message> (request id <id>)"; the message alone if the id is empty, long or has unusual characters.
std::string WithRequestId(std::string message, std::string_view id);

// The message without what WithRequestId has added to it, or to texts that it consists of.
std::string WithoutRequestIds(std::string_view message);

// Makes `message` the last one, and returns whether the one before said something else. For log lines that
// are written once for each cause.
bool ReplaceMessage(std::string& last, std::string_view message);

}  // namespace nodepool
