#include "driver/cloud/api/api_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>

#include "base/error.h"
#include "base/text.h"
#include "net/http/http.h"

namespace nodepool::driver::cloud::api {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxText = 600;

std::string JsonText(const json::value& body, const std::vector<std::string_view>& texts) {
  if (!body.is_object()) return "";
  std::string text;
  auto add = [&text](const json::value* message) {
    if (message == nullptr || !message->is_string() || message->as_string().empty()) return;
    if (!text.empty()) text += "; ";
    text += std::string_view(message->as_string());
  };
  add(body.as_object().if_contains("message"));
  for (const auto& [key, member] : body.as_object()) {
    if (member.is_object()) add(member.as_object().if_contains("message"));
    if (std::ranges::find(texts, std::string_view(key)) != texts.end()) add(&member);
  }
  return text;
}

// The text between tags, with runs of blanks replaced by one.
std::string WithoutTags(std::string_view body) {
  std::string text;
  bool is_tag = false;
  for (char c : body.substr(0, 16 * kMaxText)) {
    bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '>';
    if (c == '<') is_tag = true;
    if (!is_tag && !is_blank) text += c;
    if (is_blank && !text.empty() && text.back() != ' ') text += ' ';
    if (c == '>') is_tag = false;
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace

int StatusOf(const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const ApiError& error) {
    return error.status();
  } catch (...) {
    return 0;
  }
}

std::string CodeOf(const Failure& failure) {
  try {
    failure.Rethrow();
  } catch (const ApiError& error) {
    return error.code();
  } catch (...) {
    return "";
  }
}

Fault ReadFault(int status, std::string_view body) { return {VerdictOfStatus(status), FaultText(body), ""}; }

ApiError MakeApiError(std::string_view call, int status, Fault fault) {
  std::string text = fault.text.empty() ? std::string(net::HttpReason(status)) : std::move(fault.text);
  std::string message = WithRequestId(fmt::format("{}: {} {}", call, status, text), fault.request_id);
  return ApiError(fault.verdict, std::move(message), status, std::move(fault.code));
}

Verdict VerdictOfStatus(int status) {
  switch (status) {
    case 404:
    case 410:
      return Verdict::kNotFound;
    case 409:
      return Verdict::kConflict;
    case 401:
    case 407:
    case 408:
    case 425:
      return Verdict::kRetry;
    case 429:
      return Verdict::kRateLimited;
    default:
      return status >= 500 ? Verdict::kRetry : Verdict::kInvalid;
  }
}

std::string FaultText(std::string_view body, const std::vector<std::string_view>& texts) {
  boost::system::error_code error;
  json::value parsed = json::parse(body.substr(0, 64 * 1024), error);
  std::string text = error ? WithoutTags(body) : JsonText(parsed, texts);
  return Excerpt(text, kMaxText);
}

std::string OneLine(std::string text, std::size_t limit) {
  std::ranges::replace(text, '\r', ' ');
  std::ranges::replace(text, '\n', ' ');
  return Excerpt(Trim(text), limit);
}

std::string WithRemedy(std::string message, std::string_view remedy) {
  if (remedy.empty()) return message;
  if (message.ends_with('.')) message.pop_back();
  return message + "; " + std::string(remedy);
}

bool CodeSet::contains(std::string_view code) const {
  return std::ranges::any_of(codes_, [code](std::string_view one) {
    if (one.ends_with('*')) return code.starts_with(one.substr(0, one.size() - 1));
    return one.starts_with('*') ? code.ends_with(one.substr(1)) : code == one;
  });
}

Fault Classify(const std::vector<FaultRule>& rules, int status, std::string code, std::string text) {
  auto rule = std::ranges::find_if(rules, [&](const FaultRule& one) {
    bool has_status = one.status == 0 || one.status == status;
    return has_status && (one.codes.empty() || one.codes.contains(code));
  });
  Fault fault;
  if (rule != rules.end()) {
    fault.verdict = rule->verdict;
    text = WithRemedy(std::move(text), rule->remedy);
  } else if (code.empty() || status >= 500) {
    fault.verdict = VerdictOfStatus(status);
  }
  fault.text = std::move(text);
  fault.code = std::move(code);
  return fault;
}

}  // namespace nodepool::driver::cloud::api
