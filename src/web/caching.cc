#include "web/caching.h"

#include <ctime>

#include "base/time_text.h"

namespace nodepool::web {

void AddCachingHeaders(net::HttpResponse& response, WallTime computed) {
  response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  response.headers.emplace_back("Cache-Control", "max-age=1, public");
  response.headers.emplace_back("Last-Modified", HttpDate(computed));
  response.headers.emplace_back("Expires", HttpDate(computed + std::chrono::seconds(1)));
}

}  // namespace nodepool::web
