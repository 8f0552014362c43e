#include "web/launcher_site.h"

#include <algorithm>
#include <iterator>

#include "base/version.h"
#include "web/actions/action_endpoints.h"
#include "web/api/api.h"
#include "web/api/api_images.h"
#include "web/api/open_api.h"
#include "web/job_events.h"
#include "web/lists/lists.h"
#include "web/lists/recent_answers.h"
#include "web/live/live.h"
#include "web/requests/request_endpoints.h"
#include "web/runner_hooks.h"

namespace nodepool::web {
namespace {

Response Ready(const Request& request, const launcher::Launcher& launcher, const std::string& state_fault,
               WallTime now) {
  if (!state_fault.empty())
    return ErrorResponse(request, 503,
                         "The embedded ZooKeeper server cannot write its state: " + state_fault);
  if (!launcher.is_ready()) return ErrorResponse(request, 503, launcher.WhyNotReady());
  Response response;
  response.body = "OK";
  if (const auto& rejected = launcher.rejected())
    response.body += "; the changed configuration is rejected: " + rejected->error;
  AddCachingHeaders(response, now);
  return response;
}

Response Metrics(const launcher::Launcher& launcher, const metrics::Prometheus& prometheus) {
  Response response;
  response.content_type = metrics::Prometheus::kContentType;
  response.body = prometheus.Text([&launcher](metrics::Sink& to) { launcher.ReportGauges(to); });
  return response;
}

}  // namespace

std::vector<Endpoint> LauncherEndpoints(Loop& loop, launcher::Launcher& launcher,
                                        const metrics::Prometheus& prometheus, const std::string& state_fault,
                                        Access& access) {
  std::vector<Endpoint> endpoints = {
      {"GET",
       "/ready",
       Pure([&](const Request& request) { return Ready(request, launcher, state_fault, loop.Now()); }),
       {"200 while every configured provider can be used.", {}, {{"text/plain", Text()}}, {503}},
       true,
       true},
      {"GET",
       "/metrics",
       Pure([&](const Request&) { return Metrics(launcher, prometheus); }),
       {"Metrics in Prometheus' text format.", {}, {{"text/plain", Text()}}, {}}},
  };
  auto recent = std::make_shared<RecentAnswers>(loop);
  std::ranges::move(ListEndpoints(loop, launcher, recent), std::back_inserter(endpoints));
  std::ranges::move(ApiEndpoints(launcher, recent), std::back_inserter(endpoints));
  endpoints.push_back(BuildLogEndpoint(launcher));
  endpoints.push_back(JobEventsEndpoint(loop, launcher, access));
  endpoints.push_back(RunnerHookEndpoint(loop, launcher));
  auto live = std::make_shared<Live>(loop, launcher, prometheus, recent);
  std::ranges::move(LiveEndpoints(loop, std::move(live), access), std::back_inserter(endpoints));
  std::ranges::move(RequestEndpoints(loop, launcher, access), std::back_inserter(endpoints));
  std::ranges::move(ActionEndpoints(loop, launcher, access), std::back_inserter(endpoints));
  endpoints.push_back(OpenApiEndpoint(endpoints, std::string(Version()), loop));
  return endpoints;
}

}  // namespace nodepool::web
