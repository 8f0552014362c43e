#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cloud/api/api_error.h"

// What a cloud's codes of errors mean, as tables.
namespace nodepool::driver::cloud::api {

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
