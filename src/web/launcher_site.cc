#include "web/launcher_site.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <iterator>

#include "base/text.h"
#include "web/caching.h"
#include "web/lists.h"
#include "web/request_report.h"

namespace nodepool::web {
namespace {

// More would keep the loop busy for too long.
constexpr std::size_t kMostRequests = 10'000;

Response Ready(const Request& request, const launcher::Launcher& launcher, WallTime now) {
  if (!launcher.is_ready()) return ErrorResponse(request, 503, launcher.WhyNotReady());
  Response response;
  response.body = "OK";
  AddCachingHeaders(response, now);
  return response;
}

Response Metrics(const launcher::Launcher& launcher, const metrics::Prometheus& prometheus) {
  Response response;
  response.content_type = metrics::Prometheus::kContentType;
  response.body = prometheus.Text([&launcher](metrics::Sink& to) { launcher.ReportGauges(to); });
  return response;
}

Response Requests(const Request& request, const launcher::Launcher& launcher, WallTime now) {
  std::optional<RequestState> state;
  if (const std::string& text = request.Parameter("state"); !text.empty()) {
    state = ParseRequestState(text);
    if (!state) {
      return ErrorResponse(request, 400,
                           "state is requested, pending, fulfilled or failed, not " + Excerpt(text) + ".");
    }
  }
  std::size_t limit = kMostRequests;
  if (const std::string& text = request.Parameter("limit"); !text.empty()) {
    const char* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, limit);
    if (error != std::errc() || rest != end) return ErrorResponse(request, 400, "limit is a number.");
    limit = std::min(limit, kMostRequests);
  }
  std::vector<launcher::RequestStatus> found = launcher.Requests(state, limit + 1);
  bool is_complete = found.size() <= limit;
  if (!is_complete) found.resize(limit);
  boost::json::array list;
  for (const launcher::RequestStatus& status : found) list.push_back(ToJson(status, now));
  Response response;
  response.content_type = "application/json";
  response.body = boost::json::serialize(
      boost::json::object{{"requests", std::move(list)}, {"is_complete", is_complete}});
  AddCachingHeaders(response, now);
  return response;
}

}  // namespace

std::vector<Endpoint> LauncherEndpoints(Loop& loop, const launcher::Launcher& launcher,
                                        const metrics::Prometheus& prometheus) {
  std::vector<Endpoint> endpoints = {
      {"GET", "/ready", Pure([&](const Request& request) { return Ready(request, launcher, loop.Now()); })},
      {"GET", "/metrics", Pure([&](const Request&) { return Metrics(launcher, prometheus); })},
      {"GET", "/api/v1/requests",
       Pure([&](const Request& request) { return Requests(request, launcher, loop.Now()); })},
  };
  std::ranges::move(ListEndpoints(loop, launcher), std::back_inserter(endpoints));
  return endpoints;
}

}  // namespace nodepool::web
