#include "web/page/page.h"

#include <algorithm>

#include "base/text.h"
#include "web/lists/recent_answers.h"

namespace nodepool::web {

namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'";

// Both forms of a file have a tag of their own (RFC 9110, 8.8.3.3).
std::string TagOf(const PageFile& file, bool is_compressed) {
  std::string tag(file.tag);
  if (is_compressed) tag.insert(tag.size() - 1, "-gzip");
  return tag;
}

bool Has(const Request& request, const std::string& tag) {
  std::vector<std::string> known = Split(request.Header("if-none-match"), ',');
  return std::ranges::any_of(known, [&](const std::string& each) {
    std::string_view trimmed = Trim(each);
    return trimmed == "*" || trimmed == tag || trimmed == "W/" + tag;
  });
}

Response AnswerFile(const Request& request, const PageFile& file) {
  bool is_compressed = PrefersGzip(request.Header("accept-encoding"));
  std::string tag = TagOf(file, is_compressed);
  Response response;
  response.content_type = file.content_type;
  response.headers = {{"Cache-Control", "no-cache"},         {"ETag", tag},
                      {"Vary", "Accept-Encoding"},           {"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"}};
  if (Has(request, tag)) {
    response.status = 304;
    return response;
  }
  if (is_compressed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = is_compressed ? file.gzip : file.plain;
  return response;
}

}  // namespace

std::vector<Endpoint> PageEndpoints() {
  std::vector<Endpoint> endpoints;
  for (const PageFile& file : PageFiles()) {
    std::string path = file.name == "index.html" ? "/" : "/assets/" + std::string(file.name);
    auto answer = [file](const Request& request) { return AnswerFile(request, file); };
    endpoints.push_back({"GET", std::move(path), Pure(answer)});
  }
  return endpoints;
}

}  // namespace nodepool::web
