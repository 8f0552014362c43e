#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/error.h"

namespace nodepool::driver::cloud {

// Whether a call of the cloud ended in a way that says nothing about the call: the service is away, or does
// not want to be called now (drivers.md 3).
inline bool IsOutage(Verdict verdict) {
  return verdict == Verdict::kRetry || verdict == Verdict::kRateLimited;
}

// The same of a failure, which may also be a call that took too long.
inline bool IsPassing(const Failure& failure) {
  return IsOutage(failure.verdict()) || failure.verdict() == Verdict::kTimedOut;
}

}  // namespace nodepool::driver::cloud

namespace nodepool::driver::cloud::api {

// A service refused a call. The verdict says what to do; the message contains the cloud's own text.
class ApiError : public Error {
 public:
  ApiError(Verdict verdict, std::string message, int status, std::string code = "")
      : Error(verdict, std::move(message)), status_(status), code_(std::move(code)) {}
  int status() const { return status_; }  // of the answer
  // The cloud's error code; empty: there is none.
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string code_;
};

// The status of an ApiError; 0 for other failures.
int StatusOf(const Failure& failure);

// The code of an ApiError; empty for other failures, and where there is none.
std::string CodeOf(const Failure& failure);

// The status with which a call was refused; 0: it was not refused.
template <class T>
int StatusOf(const Outcome<T>& outcome) {
  return outcome ? 0 : StatusOf(outcome.error());
}

// Awaits a reading; none: the cloud has no such thing (kNotFound).
template <class T>
Task<std::optional<T>> IfFound(Task<T> reading) {
  Outcome<T> found = co_await Attempt(std::move(reading));
  if (FailedWith(found, Verdict::kNotFound)) co_return std::nullopt;
  if (!found) found.error().Rethrow();
  co_return std::move(*found);
}

// Awaits a deletion; false: there was nothing to delete.
template <class T>
Task<bool> WasThere(Task<T> deletion) {
  Outcome<T> deleted = co_await Attempt(std::move(deletion));
  if (FailedWith(deleted, Verdict::kNotFound)) co_return false;
  if (!deleted) deleted.error().Rethrow();
  co_return true;
}

// The content of the answer to a refused call.
struct Fault {
  Verdict verdict = Verdict::kFail;
  std::string text;  // the cloud's message, in one line and the same each time; empty: none
  std::string code;
  // By which the cloud's operators find the call; at the end of the error's message. Empty: there is none.
  std::string request_id = "";
  // Whether the service did not accept the call's signature or credential: with another one it may. None: if
  // the status is 401.
  std::optional<bool> refuses_signature = std::nullopt;
};

// Parses the refusals of one API: a status of 400 or more with its body, which may be anything. kRateLimited:
// the service has done nothing, and the call is repeated after a pause.
using FaultReader = std::function<Fault(int status, std::string_view body)>;

// The reader for an API whose errors have no known format.
Fault ReadFault(int status, std::string_view body);

// `call` names the call: "POST compute /servers".
ApiError MakeApiError(std::string_view call, int status, Fault fault);

// The verdict for a status if the body does not say more. kRetry where the service is down (5xx) or does not
// accept our credentials, which somebody replaces (401, 407): that says nothing about the call.
Verdict VerdictOfStatus(int status);

// The message in the body of a refusal, as one line: from JSON the messages ("message" at the root and one
// level below; members of the root that are in `texts`), else the text without tags.
std::string FaultText(std::string_view body, const std::vector<std::string_view>& texts = {"error"});

// A cloud's message as a part of ours: in one line, of at most `limit` bytes.
std::string OneLine(std::string text, std::size_t limit = 600);

// The message, and what an operator does about it; empty: nothing is said.
std::string WithRemedy(std::string message, std::string_view remedy);

// What a cloud's codes of errors mean, as tables.

// Codes of errors: "QUOTA_EXCEEDED"; all that begin or end alike: "IP_SPACE_EXHAUSTED*", "*.NotFound".
class CodeSet {
 public:
  CodeSet(std::initializer_list<std::string_view> codes) : codes_(codes) {}
  bool contains(std::string_view code) const;
  bool empty() const { return codes_.empty(); }

 private:
  std::vector<std::string_view> codes_;
};

// A kind of refusal.
struct FaultRule {
  int status;     // 0: any
  CodeSet codes;  // empty: any, and none
  Verdict verdict;
  std::string_view remedy = "";  // what an operator does about it; empty: the message says it, or nothing
};

// The refusal with the verdict and the remedy of the first rule that it fits. Without one its status decides
// if it is the service's fault, or there is no code; else it is final.
Fault Classify(const std::vector<FaultRule>& rules, int status, std::string code, std::string text);

}  // namespace nodepool::driver::cloud::api
