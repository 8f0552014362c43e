#include "base/request_id.h"

#include <algorithm>

namespace nodepool {

namespace {

constexpr std::string_view kBegin = " (request id ";
constexpr std::size_t kMaxLength = 100;

bool IsUsual(char c) {
  bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || std::string_view("-_.:+/=").find(c) != std::string_view::npos;
}

}  // namespace

std::string WithRequestId(std::string message, std::string_view id) {
  if (id.empty() || id.size() > kMaxLength || !std::ranges::all_of(id, &IsUsual)) return message;
  message += kBegin;
  message += id;
  message += ')';
  return message;
}

std::string WithoutRequestIds(std::string_view message) {
  std::string text;
  while (true) {
    std::size_t begin = message.find(kBegin);
    std::size_t end = begin == std::string_view::npos ? begin : message.find(')', begin);
    if (end == std::string_view::npos) return text.append(message);
    text += message.substr(0, begin);
    message.remove_prefix(end + 1);
  }
}

bool ReplaceMessage(std::string& last, std::string_view message) {
  std::string text = WithoutRequestIds(message);
  bool is_other = text != last;
  last = std::move(text);
  return is_other;
}

}  // namespace nodepool
