#include "drivers/fake/fake_control.h"

#include <boost/json.hpp>
#include <cmath>

#include "base/text.h"

namespace nodepool::drivers {

namespace {

namespace json = boost::json;
using net::HttpRequest;
using net::HttpResponse;

constexpr std::string_view kServers = "/servers/";
constexpr double kMaxSeconds = 86400;  // seconds
constexpr double kMaxFaults = 1e6;

HttpResponse Json(const json::value& value, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = json::serialize(value);
  return response;
}

HttpResponse Refusal(int status, const std::string& message) {
  return Json(json::object{{"message", message}}, status);
}

double Number(const json::value& value, const std::string& key, double min, double max) {
  double number = value.is_number() ? value.to_number<double>() : std::nan("");
  if (!(number >= min && number <= max))
    throw Error(Verdict::kInvalid, fmt::format("{}: expected a number from {} to {}", key, min, max));
  return number;
}

// A setting that tests may change, with its name in the configuration.
struct Knob {
  const char* key;
  Duration FakeSimulation::*latency = nullptr;
  double FakeSimulation::*rate = nullptr;
  double FakeLimits::*limit = nullptr;
};

const std::vector<Knob>& Knobs() {
  static const std::vector<Knob> knobs = {
      {.key = "create-latency", .latency = &FakeSimulation::create_latency},
      {.key = "delete-latency", .latency = &FakeSimulation::delete_latency},
      {.key = "upload-latency", .latency = &FakeSimulation::upload_latency},
      {.key = "create-failure-rate", .rate = &FakeSimulation::create_failure_rate},
      {.key = "delete-failure-rate", .rate = &FakeSimulation::delete_failure_rate},
      {.key = "upload-failure-rate", .rate = &FakeSimulation::upload_failure_rate},
      {.key = "cores", .limit = &FakeLimits::cores},
      {.key = "instances", .limit = &FakeLimits::instances},
      {.key = "ram", .limit = &FakeLimits::ram},
      {.key = "volumes", .limit = &FakeLimits::volumes},
      {.key = "volume-gb", .limit = &FakeLimits::volume_gb},
  };
  return knobs;
}

void Turn(const Knob& knob, const json::value& value, FakeSimulation& settings) {
  if (knob.latency != nullptr) {
    std::chrono::duration<double> seconds(Number(value, knob.key, 0, kMaxSeconds));
    settings.*knob.latency = std::chrono::duration_cast<Duration>(seconds);
  } else if (knob.rate != nullptr) {
    settings.*knob.rate = Number(value, knob.key, 0, 1);
  } else {
    double limit = Number(value, knob.key, -1, 1e12);
    settings.limits.*knob.limit = limit < 0 ? driver::kUnlimited : limit;
  }
}

json::value Position(const Knob& knob, const FakeSimulation& settings) {
  if (knob.latency != nullptr) return std::chrono::duration<double>(settings.*knob.latency).count();
  if (knob.rate != nullptr) return settings.*knob.rate;
  double limit = settings.limits.*knob.limit;
  return std::isinf(limit) ? -1 : limit;
}

json::object Settings(const FakeSimulation& settings) {
  json::object result, limits;
  for (const Knob& knob : Knobs())
    (knob.limit != nullptr ? limits : result)[knob.key] = Position(knob, settings);
  result["limits"] = std::move(limits);
  return result;
}

void Apply(const json::object& changes, bool is_limits, FakeSimulation& settings) {
  for (const auto& [name, value] : changes) {
    std::string key(name);
    if (!is_limits && key == "limits" && value.is_object()) {
      Apply(value.as_object(), true, settings);
      continue;
    }
    auto is_it = [&](const Knob& knob) { return key == knob.key && (knob.limit != nullptr) == is_limits; };
    auto knob = std::ranges::find_if(Knobs(), is_it);
    if (knob == Knobs().end()) throw Error(Verdict::kInvalid, "there is no setting " + Excerpt(key));
    Turn(*knob, value, settings);
  }
}

void Inflict(const json::object& changes, FakeCloud& cloud) {
  using Fault = void (FakeCloud::*)(int);
  static const std::map<std::string, Fault> faults = {
      {"creates", &FakeCloud::FailNextCreates},
      {"creates-with-server", &FakeCloud::FailNextCreatesWithServer},
      {"hanging-creates", &FakeCloud::HangNextCreates},
      {"deletes", &FakeCloud::FailNextDeletes},
      {"uploads", &FakeCloud::FailNextUploads},
      {"image-deletes", &FakeCloud::FailNextImageDeletes},
  };
  for (const auto& [name, value] : changes) {
    std::string key(name);
    if (key == "pause-creates" && value.is_bool()) {
      value.as_bool() ? cloud.PauseCreates() : cloud.ResumeCreates();
    } else if (key == "pause-uploads" && value.is_bool()) {
      value.as_bool() ? cloud.PauseUploads() : cloud.ResumeUploads();
    } else if (auto fault = faults.find(key); fault != faults.end()) {
      (cloud.*fault->second)(static_cast<int>(Number(value, key, 0, kMaxFaults)));
    } else {
      throw Error(Verdict::kInvalid, "there is no fault " + Excerpt(key));
    }
  }
}

json::object Text(const std::map<std::string, std::string>& metadata) {
  json::object object;
  for (const auto& [key, value] : metadata) object[key] = value;
  return object;
}

const char* Word(FakeServerStatus status) {
  switch (status) {
    case FakeServerStatus::kBuild:
      return "BUILD";
    case FakeServerStatus::kActive:
      return "ACTIVE";
    case FakeServerStatus::kError:
      return "ERROR";
  }
  return "";
}

json::array Servers(FakeCloud& cloud) {
  json::array list;
  for (const auto& [id, server] : cloud.servers()) {
    list.push_back(json::object{{"id", id},
                                {"name", server.name},
                                {"status", Word(server.status)},
                                {"flavor", server.flavor.name},
                                {"zone", server.zone},
                                {"metadata", Text(server.metadata)}});
  }
  return list;
}

json::array Images(FakeCloud& cloud) {
  json::array list;
  for (const std::string& name : cloud.settings().images)
    list.push_back(json::object{{"id", name}, {"name", name}, {"metadata", json::object()}});
  for (const auto& [id, image] : cloud.images())
    list.push_back(json::object{{"id", id}, {"name", image.name}, {"metadata", Text(image.metadata)}});
  return list;
}

json::object Body(const HttpRequest& request) {
  boost::system::error_code error;
  json::value body = json::parse(request.body, error);
  if (error || !body.is_object()) throw Error(Verdict::kInvalid, "the body is not a JSON object");
  return body.as_object();
}

HttpResponse Do(FakeCloud& cloud, const HttpRequest& request) {
  std::string what = request.method + " " + request.path;
  if (what == "GET /servers") return Json(Servers(cloud));
  if (what == "GET /images") return Json(Images(cloud));
  if (what == "GET /settings") return Json(Settings(cloud.settings()));
  if (what == "PUT /settings") {
    FakeSimulation settings = cloud.settings();
    Apply(Body(request), false, settings);
    cloud.Configure(std::move(settings));
    return Json(Settings(cloud.settings()));
  }
  if (what == "POST /faults") {
    Inflict(Body(request), cloud);
    return Json(json::object());
  }
  return Refusal(404, "there is no " + Excerpt(what));
}

}  // namespace

Task<HttpResponse> FakeControl::Answer(FakeCloud& cloud, HttpRequest request) {
  try {
    if (request.method == "DELETE" && request.path.starts_with(kServers)) {
      co_await cloud.DeleteServer(request.path.substr(kServers.size()));
      co_return Json(json::object());
    }
    co_return Do(cloud, request);
  } catch (const Error& error) {
    if (error.verdict() == Verdict::kCancelled) throw;
    co_return Refusal(error.verdict() == Verdict::kNotFound ? 404 : 400, error.message());
  }
}

FakeControl::FakeControl(Loop& loop, FakeCloud& cloud, int port)
    : server_(loop, [&cloud](HttpRequest request) { return Answer(cloud, std::move(request)); }) {
  server_.Listen("127.0.0.1", port);
}

}  // namespace nodepool::drivers
