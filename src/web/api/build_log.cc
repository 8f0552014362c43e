#include "web/api/build_log.h"

#include <fmt/format.h>

#include "async/attempt.h"
#include "base/file_end.h"
#include "base/text.h"

namespace nodepool::web {
namespace {

constexpr const char* kPattern = "/api/v1/images/{image}/builds/{build}/log";
constexpr std::size_t kMostLog = 64 * 1024;

Task<Response> AnswerLog(const launcher::Launcher& launcher, Request request) {
  launcher::Records records = launcher.records();
  if (!records.is_complete()) co_return ErrorResponse(request, 503, launcher::Records::kNotComplete);
  std::vector<std::string> places = ParametersIn(request.path, kPattern);
  store::BuildKey key{ImageName(places.at(0)), BuildId(places.at(1))};
  auto build = records.images.builds().find(key);
  if (build == records.images.builds().end()) {
    std::string why =
        fmt::format("There is no build {} of image {}.", Excerpt(key.build.value), Excerpt(key.image.value));
    co_return ErrorResponse(request, 404, std::move(why));
  }
  std::string host = build->second.record.builder.value_or("the builder's host");
  std::string path = launcher.config()->common.build_log_dir + "/" + key.log_name();
  auto work = [path] { return ReadFileEnd(path, kMostLog); };
  Task<std::string> read = OnBlockingPool(launcher.blocking_pool(), std::move(work));
  Outcome<std::string> log = co_await Attempt(std::move(read));
  if (!log) {
    std::string why =
        fmt::format("The log of build {} is on {}, in {}, and cannot be read here.", key, host, path);
    co_return ErrorResponse(request, 404, std::move(why));
  }
  Response response;
  response.body = std::move(*log);
  response.headers.emplace_back("Cache-Control", "no-store");
  co_return response;
}

ParameterDoc LogPlace(std::string name, std::string text) {
  return {std::move(name), std::move(text), Text(), false, ParameterDoc::Place::kPath};
}

}  // namespace

Endpoint BuildLogEndpoint(const launcher::Launcher& launcher) {
  EndpointDoc doc{
      "The end of a build's log, at most 64 KiB, where this web server can read the builder's files.",
      {LogPlace("image", "name of the image"), LogPlace("build", "id of the build")},
      {{"text/plain", Text()}},
      {404, 503}};
  auto answer = [&launcher](Request request) { return AnswerLog(launcher, std::move(request)); };
  return {"GET", kPattern, answer, std::move(doc)};
}

}  // namespace nodepool::web
