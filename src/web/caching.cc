#include "web/caching.h"

#include <ctime>

namespace nodepool::web {

std::string HttpDate(WallTime time) {
  auto whole = std::chrono::time_point_cast<std::chrono::seconds>(time);
  std::time_t seconds = whole.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  std::size_t size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return std::string(text, size);
}

std::optional<WallTime> ParseHttpDate(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != 0) return std::nullopt;
  return WallTime(std::chrono::seconds(timegm(&parts)));
}

void AddCachingHeaders(net::HttpResponse& response, WallTime computed) {
  response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  response.headers.emplace_back("Cache-Control", "max-age=1, public");
  response.headers.emplace_back("Last-Modified", HttpDate(computed));
  response.headers.emplace_back("Expires", HttpDate(computed + std::chrono::seconds(1)));
}

}  // namespace nodepool::web
