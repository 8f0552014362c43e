#include "web/json_text.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <string_view>

namespace nodepool::web {
namespace {

bool NeedsEscape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

void AppendText(std::string& out, const boost::json::string& text) {
  if (std::ranges::any_of(std::string_view(text), NeedsEscape)) {
    out += boost::json::serialize(text);
    return;
  }
  out += '"';
  out += std::string_view(text);
  out += '"';
}

}  // namespace

void AppendJson(std::string& out, const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      out += "null";
      break;
    case boost::json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      break;
    case boost::json::kind::int64: {
      char digits[24];
      auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value.get_int64());
      out.append(digits, end);
      break;
    }
    case boost::json::kind::string:
      AppendText(out, value.get_string());
      break;
    case boost::json::kind::array: {
      out += '[';
      bool is_first = true;
      for (const boost::json::value& entry : value.get_array()) {
        if (!std::exchange(is_first, false)) out += ',';
        AppendJson(out, entry);
      }
      out += ']';
      break;
    }
    default:
      out += boost::json::serialize(value);
  }
}

}  // namespace nodepool::web
