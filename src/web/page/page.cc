#include "web/page/page.h"

#include <algorithm>

#include "base/text.h"

namespace nodepool::web {

namespace {

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
    "'none'; "
    "form-action 'none'; frame-ancestors 'none'";

std::string Trimmed(std::string_view text) {
  std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  std::size_t end = text.find_last_not_of(" \t") + 1;
  return std::string(text.substr(begin, std::max(end, begin) - begin));
}

// Whether Accept-Encoding names gzip, and not with quality 0.
bool TakesGzip(const Request& request) {
  for (const std::string& offer : Split(request.Header("accept-encoding"), ',')) {
    std::size_t semicolon = std::min(offer.find(';'), offer.size());
    if (Lower(Trimmed(std::string_view(offer).substr(0, semicolon))) != "gzip") continue;
    std::string quality = Trimmed(std::string_view(offer).substr(semicolon));
    return quality.find_first_of("123456789", quality.find('=')) != std::string::npos || quality.empty();
  }
  return false;
}

bool HasFile(const Request& request, const PageFile& file) {
  std::vector<std::string> known = Split(request.Header("if-none-match"), ',');
  return std::ranges::any_of(known, [&](const std::string& tag) {
    std::string trimmed = Trimmed(tag);
    return trimmed == "*" || trimmed == file.tag || trimmed == "W/" + std::string(file.tag);
  });
}

Response AnswerFile(const Request& request, const PageFile& file) {
  Response response;
  response.content_type = file.content_type;
  response.headers = {{"Cache-Control", "no-cache"},         {"ETag", std::string(file.tag)},
                      {"Vary", "Accept-Encoding"},           {"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"}};
  if (HasFile(request, file)) {
    response.status = 304;
    return response;
  }
  bool is_compressed = TakesGzip(request);
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
