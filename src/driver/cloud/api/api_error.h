#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "async/attempt.h"
#include "base/error.h"

namespace nodepool::driver::cloud::api {

// A service refused a call. The verdict says what to do; the message keeps the cloud's own words.
class ApiError : public Error {
 public:
  ApiError(Verdict verdict, std::string message, int status, std::string code = "")
      : Error(verdict, std::move(message)), status_(status), code_(std::move(code)) {}
  int status() const { return status_; }  // of the answer
  // The cloud's name for the fault; empty: it has none.
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string code_;
};

// The status of an ApiError, else 0.
int StatusOf(const Failure& failure);

// The status with which a call was refused; 0: it was not.
template <class T>
int StatusOf(const Outcome<T>& outcome) {
  return outcome ? 0 : StatusOf(outcome.error());
}

// What the answer to a refused call says.
struct Fault {
  Verdict verdict = Verdict::kFail;
  std::string text;  // the cloud's own words, in one line; empty: none
  std::string code;
};

// Understands the refusals of one API: a status of 400 or more with its body, which may be
// anything.
using FaultReader = std::function<Fault(int status, std::string_view body)>;

// The reader for an API of which nothing is known.
Fault ReadFault(int status, std::string_view body);

// `call` names what was asked: "POST compute /servers".
ApiError MakeApiError(std::string_view call, int status, Fault fault);

// What a status means where the body says nothing else.
Verdict VerdictOfStatus(int status);

// The words in the body of a refusal, cut to a line: of JSON the messages ("message" at the root and one
// level below; members of the root that are in `texts`), else the text without tags.
std::string FaultText(std::string_view body, const std::vector<std::string_view>& texts = {"error"});

}  // namespace nodepool::driver::cloud::api
