#include "web/api/api_fields.h"

#include <fmt/format.h>

#include <set>

#include "async/task.h"
#include "base/small_file.h"
#include "base/text.h"
#include "listing/record_listing.h"
#include "model/json.h"

namespace nodepool::web {

namespace json = boost::json;
using listing::Kind;
using listing::RunnerJobRow;
using listing::RunnerSetRow;
using store::StoredBuild;
using store::StoredNode;
using store::StoredUpload;

namespace {

template <class See>
void ForEachBuild(const ImageEntry& image, See see) {
  const auto& builds = image.images.builds();
  for (auto build = builds.lower_bound({image.name, BuildId()});
       build != builds.end() && build->first.image == image.name; ++build) {
    see(build->second);
  }
}

json::value BuildRequest(const ImageEntry& image) {
  if (!image.images.build_requests().contains(image.name)) return nullptr;
  return image.images.IsBuildLocked(image.name) ? "building" : "pending";
}

Cell BuildRequestAge(const ImageEntry& image) {
  auto request = image.images.build_requests().find(image.name);
  if (request == image.images.build_requests().end()) return nullptr;
  return Cell::Since(request->second);
}

json::value BuildCounts(const ImageEntry& image) {
  std::map<std::string_view, int> counts;
  ForEachBuild(image, [&](const StoredBuild& build) {
    if (build.record.state) ++counts[ToString(*build.record.state)];
  });
  json::object by_state;
  for (const auto& [state, count] : counts) by_state[state] = count;
  return by_state;
}

const StoredBuild* NewestReady(const ImageEntry& image) {
  const StoredBuild* newest = nullptr;
  ForEachBuild(image, [&](const StoredBuild& build) {
    bool is_ready = build.record.state == ImageState::kReady;
    if (is_ready && (newest == nullptr || newest->record.state_time < build.record.state_time))
      newest = &build;
  });
  return newest;
}

json::value ReadyIn(const ImageEntry& image) {
  std::set<std::string> providers;
  const auto& uploads = image.images.uploads();
  for (auto upload = uploads.lower_bound({{image.name, BuildId()}, ProviderName(), UploadId()});
       upload != uploads.end() && upload->first.build.image == image.name; ++upload) {
    if (upload->second.record.state == ImageState::kReady) providers.insert(upload->first.provider.value);
  }
  return json::array(providers.begin(), providers.end());
}

const StoredBuild* NewestBuild(const ImageEntry& image) {
  const StoredBuild* newest = nullptr;
  ForEachBuild(image, [&](const StoredBuild& build) {
    if (build.record.state == ImageState::kDeleting) return;
    if (newest == nullptr || newest->record.state_time < build.record.state_time) newest = &build;
  });
  return newest;
}

json::value LastBuild(const ImageEntry& image) {
  const StoredBuild* build = NewestBuild(image);
  if (build == nullptr) return nullptr;
  const ImageBuild& record = build->record;
  return json::object{{"id", build->id.build.value},
                      {"state", record.state ? json::value(ToString(*record.state)) : json::value()},
                      {"since", ToSeconds(record.state_time)},
                      {"error", record.error ? json::value(*record.error) : json::value()}};
}

json::value MissingIn(const ImageEntry& image) {
  json::array providers;
  for (const ProviderName& provider : image.missing_in) providers.emplace_back(provider.value);
  return providers;
}

std::vector<ProviderName> ProvidersWithout(const store::ImageCache& images, const ImageName& image,
                                           const driver::LoadedConfig& config) {
  std::vector<ProviderName> missing;
  for (const auto& [name, provider] : config.providers) {
    auto settings = provider->diskimages.find(image);
    bool is_wanted =
        provider->manages_images && settings != provider->diskimages.end() && !settings->second->is_paused;
    if (is_wanted && images.NewestReadyUpload(image, name) == nullptr) missing.push_back(name);
  }
  return missing;
}

}  // namespace

ImageEntry EntryOf(const launcher::Launcher& launcher, const ImageName& name) {
  const store::ImageCache& images = launcher.records().images;
  return {images, name, launcher.NextBuild(name), ProvidersWithout(images, name, *launcher.config())};
}

const FieldTable<ImageEntry>& ImageFields() {
  static const FieldTable<ImageEntry> fields({
      {{"name", Text(), "of the diskimage"}, [](const ImageEntry& i) { return json::value(i.name.value); }},
      {{"is_paused", Flag(), "no builds are begun"},
       [](const ImageEntry& i) { return json::value(i.images.paused().contains(i.name)); }},
      {{"build_request", OneOf({"pending", "building"}).OrNull(), "whether a build was requested"},
       &BuildRequest},
      {{"build_request_age", Whole().OrNull(), "seconds since the request"}, &BuildRequestAge},
      {{"builds", MapOf(Whole()), "number of builds by state"}, &BuildCounts},
      {{"newest_ready_build", Text().OrNull(), "id of the build"},
       [](const ImageEntry& i) {
         const StoredBuild* build = NewestReady(i);
         return build == nullptr ? json::value() : json::value(build->id.build.value);
       }},
      {{"newest_ready_build_age", Whole().OrNull(), "seconds since it became ready"},
       [](const ImageEntry& i) {
         const StoredBuild* build = NewestReady(i);
         return build == nullptr ? Cell() : Cell::Since(build->record.state_time);
       }},
      {{"next_build", Number().OrNull(),
        "when the newest build is older than rebuild-age, in seconds since the epoch; null: not known to "
        "this launcher"},
       [](const ImageEntry& i) {
         return i.next_build ? json::value(ToSeconds(*i.next_build)) : json::value();
       }},
      {{"last_build",
        ObjectOf({{"id", Text(), "of the build"},
                  {"state", OneOf(ImageStateWords()).OrNull(), "of the build"},
                  {"since", Number(), "when it came into this state, in seconds since the epoch"},
                  {"error", Text().OrNull(), "why it failed"}})
            .OrNull(),
        "the newest build that is not being deleted; the record of a failed one stays until the next one has "
        "ended"},
       &LastBuild},
      {{"missing_in", ListOf(Text()),
        "providers of this launcher's configuration that want the image and have no ready upload"},
       &MissingIn},
      {{"ready_in", ListOf(Text()), "providers with a ready upload", false, Kind::kProvider}, &ReadyIn},
  });
  return fields;
}

const FieldTable<StoredBuild>& BuildFields() {
  static const FieldTable<StoredBuild> fields({
      {{"id", Text(), "unique within the image"},
       [](const StoredBuild& b) { return json::value(b.id.build.value); }},
      {{"image", Text(), "name of the diskimage"},
       [](const StoredBuild& b) { return json::value(b.id.image.value); }},
      {{"state", OneOf(ImageStateWords()).OrNull(), "of the build itself, also of a paused image", false,
        Kind::kState},
       [](const StoredBuild& b) { return StateCell(b.record.state); }},
      {{"state_age", Whole(), "seconds since it came into this state"},
       [](const StoredBuild& b) { return Cell::Since(b.record.state_time); }},
      {{"builder", Text().OrNull(), "host name of the builder"},
       [](const StoredBuild& b) { return TextCell(b.record.builder); }},
      {{"formats", ListOf(Text()), "of its files"},
       [](const StoredBuild& b) -> json::value {
         return json::array(b.record.formats.begin(), b.record.formats.end());
       }},
      {{"error", Text().OrNull(), "why it failed, one line"},
       [](const StoredBuild& b) { return TextCell(b.record.error); }},
  });
  return fields;
}

const FieldTable<StoredUpload>& UploadFields() {
  static const FieldTable<StoredUpload> fields({
      {{"id", Text(), "ten digits, unique within build and provider"},
       [](const StoredUpload& u) { return json::value(u.id.upload.value); }},
      {{"image", Text(), "name of the diskimage"},
       [](const StoredUpload& u) { return json::value(u.id.build.image.value); }},
      {{"build", Text(), "id of the build"},
       [](const StoredUpload& u) { return json::value(u.id.build.build.value); }},
      {{"provider", Text(), "that it is uploaded to", false, Kind::kProvider},
       [](const StoredUpload& u) { return json::value(u.id.provider.value); }},
      {{"state", OneOf(ImageStateWords()).OrNull(), "of the build", false, Kind::kState},
       [](const StoredUpload& u) { return StateCell(u.record.state); }},
      {{"state_age", Whole(), "seconds since it came into this state"},
       [](const StoredUpload& u) { return Cell::Since(u.record.state_time); }},
      {{"format", Text().OrNull(), "of the uploaded file"},
       [](const StoredUpload& u) { return TextCell(u.record.format); }},
      {{"external_name", Text().OrNull(), "the image's name in the cloud"},
       [](const StoredUpload& u) { return TextCell(u.record.external_name); }},
      {{"external_id", Text().OrNull(), "the image's id in the cloud"},
       [](const StoredUpload& u) { return TextCell(u.record.external_id); }},
      {{"progress", Text().OrNull(), "how far it has come while it is uploading"},
       [](const StoredUpload& u) { return TextCell(u.record.progress); }},
      {{"error", Text().OrNull(), "why it failed, one line"},
       [](const StoredUpload& u) { return TextCell(u.record.error); }},
  });
  return fields;
}

namespace {

constexpr const char* kPattern = "/api/v1/images/{image}/builds/{build}/log";
constexpr std::size_t kMostLog = 64 * 1024;

Task<Response> AnswerLog(const launcher::Launcher& launcher, Request request) {
  const store::Caches& records = launcher.records();
  if (!records.synced()) co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
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

const FieldTable<StoredNode>& NodeFields() {
  static const FieldTable<StoredNode> fields({
      {{.key = "id", .type = Text(), .text = "ten digits", .is_order = true},
       [](const StoredNode& n) { return Cell::OfText(n.id.value); }},
      {{"state", OneOf(NodeStateWords()).OrNull(), "what the node is in its life", false, Kind::kState},
       [](const StoredNode& n) { return StateCell(n.record.state); }},
      {{"state_age", Whole(), "seconds since it came into this state"},
       [](const StoredNode& n) { return Cell::Since(n.record.state_time); }},
      {{"age", Whole(), "seconds since its record was made"},
       [](const StoredNode& n) { return Cell::Since(n.record.created_time.value_or(n.revision.created)); }},
      {{"is_locked", Flag(), "a client has its lock, or waits for it"},
       [](const StoredNode& n) { return json::value(n.is_locked()); }},
      {{"provider", Text().OrNull(), "where it is", false, Kind::kProvider},
       [](const StoredNode& n) { return TextOrNull(n.record.provider.value); }},
      {{"pool", Text().OrNull(), "of the provider"},
       [](const StoredNode& n) { return TextOrNull(n.record.pool.value); }},
      {{"labels", ListOf(Text()), "that it serves", false, Kind::kLabel},
       [](const StoredNode& n) { return JsonNames(n.record.type); }},
      {{"launcher", Text().OrNull(), "the pool worker that launched it"},
       [](const StoredNode& n) { return TextCell(n.record.launcher); }},
      {{"allocated_to", Text().OrNull(), "id of the request that has it"},
       [](const StoredNode& n) { return TextOrNull(n.record.allocated_to.value); }},
      {{"requestor", Text().OrNull(), "of its request: the client"},
       [](const StoredNode& n) { return TextCell(n.record.requestor); }},
      {{"tenant", Text().OrNull(), "of its request"},
       [](const StoredNode& n) { return TextCell(n.record.tenant_name); }},
      {{"server_id", Any(), "the cloud's id of the machine, as the driver keeps it"},
       [](const StoredNode& n) { return Cell::Of(n.record.external_id); }},
      {{"hostname", Text().OrNull(), "as the cloud reports it"},
       [](const StoredNode& n) { return TextCell(n.record.hostname); }},
      {{"interface_ip", Text().OrNull(), "the address to connect to"},
       [](const StoredNode& n) { return TextCell(n.record.interface_ip); }},
      {{"public_ipv4", Text().OrNull(), "where it has one"},
       [](const StoredNode& n) { return TextCell(n.record.public_ipv4); }},
      {{"private_ipv4", Text().OrNull(), "where it has one"},
       [](const StoredNode& n) { return TextCell(n.record.private_ipv4); }},
      {{"public_ipv6", Text().OrNull(), "where it has one"},
       [](const StoredNode& n) { return TextCell(n.record.public_ipv6); }},
      {{"connection_type", Text().OrNull(), "ssh, winrm ..."},
       [](const StoredNode& n) { return TextCell(n.record.connection_type); }},
      {{"connection_port", Any(), "a number, its digits, or \"redacted\""},
       [](const StoredNode& n) { return listing::ShownPort(n.record); }},
      {{"username", Text().OrNull(), "to log in with"},
       [](const StoredNode& n) { return TextCell(n.record.username); }},
      {{"cloud", Text().OrNull(), "the name of the cloud in the configuration of its driver"},
       [](const StoredNode& n) { return TextCell(n.record.cloud); }},
      {{"region", Text().OrNull(), "of the cloud"},
       [](const StoredNode& n) { return TextCell(n.record.region); }},
      {{"az", Text().OrNull(), "availability zone"},
       [](const StoredNode& n) { return TextCell(n.record.az); }},
      {{"image", Text().OrNull(), "the cloud's image, or the upload's path"},
       [](const StoredNode& n) { return TextCell(n.record.image_id); }},
      {{"resources", MapOf(Number()).OrNull(), "what it takes of its provider's quota"},
       [](const StoredNode& n) {
         return n.record.resources ? json::value(Amounts(*n.record.resources)) : json::value();
       }},
      {{"hold_job", Text().OrNull(), "who holds it: a job, or the operator"},
       [](const StoredNode& n) { return TextCell(n.record.hold_job); }},
      {{"hold_expiration", Whole().OrNull(), "seconds that a hold lasts"},
       [](const StoredNode& n) {
         return n.record.hold_expiration ? json::value(*n.record.hold_expiration) : json::value();
       }},
      {{"comment", Text().OrNull(), "why it is held, as the operator wrote it"},
       [](const StoredNode& n) { return TextCell(n.record.comment); }},
      {{"hourly_price", Number().OrNull(), "of the machine, in the unit of the configuration"},
       [](const StoredNode& n) {
         return n.record.hourly_price ? json::value(*n.record.hourly_price) : json::value();
       }},
      {{"user_data", Any(), "of the client that uses it; null in it for NaN and Infinity"},
       [](const StoredNode& n) { return Cell::Of(n.record.user_data); }},
  });
  return fields;
}

namespace {

json::value RunnerTime(const std::optional<WallTime>& time) {
  return time ? json::value(ToSeconds(*time)) : json::value();
}

json::value RunnerText(const std::string& text) { return text.empty() ? json::value() : json::value(text); }

// As this launcher's pools and others' say.
std::string WhyNoNode(const launcher::Launcher& launcher, const RunnerRun& run) {
  const store::StoredLease* lease = launcher.records().leases.Find(run.lease);
  if (lease == nullptr) return "";
  std::optional<launcher::RequestStatus> status = launcher.FindRequest(lease->record.request);
  return status && status->reason ? status->reason->text : "";
}

}  // namespace

std::vector<RunnerJobRow> RunnerJobsOf(const launcher::Launcher& launcher) {
  return listing::RunnerJobs(launcher.records().runners,
                             [&launcher](const RunnerRun& run) { return WhyNoNode(launcher, run); });
}

const FieldTable<RunnerSetRow>& RunnerFields() {
  static const FieldTable<RunnerSetRow> fields({
      {{"set", Text(), "service and name, octo/small"},
       [](const RunnerSetRow& s) { return json::value(s.key.str()); }},
      {{"state", Text().OrNull(), "listening, starting, waiting for a session, fault"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->state); }},
      {{"since", Number().OrNull(), "of the state, in seconds since the epoch"},
       [](const RunnerSetRow& s) { return RunnerTime(s.record->since); }},
      {{"url", Text().OrNull(), "whose set it is in the service"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->url); }},
      {{"hostname", Text().OrNull(), "where the daemon runs that serves it"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->hostname); }},
      {{"waiting", Whole(), "jobs without a runner"},
       [](const RunnerSetRow& s) { return json::value(s.record->waiting); }},
      {{"why", Text().OrNull(), "they wait: a sentence"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->why); }},
      {{"starting", Whole(), "runners that wait for a node, or start on it"},
       [](const RunnerSetRow& s) { return json::value(s.starting); }},
      {{"idle", Whole(), "runners that wait for a job"},
       [](const RunnerSetRow& s) { return json::value(s.idle); }},
      {{"busy", Whole(), "runners that have one"}, [](const RunnerSetRow& s) { return json::value(s.busy); }},
      {{"max_runners", Whole(), "of the configuration"},
       [](const RunnerSetRow& s) { return json::value(s.record->max_runners); }},
      {{"phantoms", Whole(), "jobs that the service counts and that never came"},
       [](const RunnerSetRow& s) { return json::value(s.record->phantoms); }},
      {{"fault", Text().OrNull(), "what is wrong, and why: a sentence"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->fault); }},
      {{"remedy", Text().OrNull(), "what to do about it, likewise"},
       [](const RunnerSetRow& s) { return RunnerText(s.record->remedy); }},
  });
  return fields;
}

const FieldTable<RunnerJobRow>& RunnerJobFields() {
  static const FieldTable<RunnerJobRow> fields({
      {{"id", Text(), "of the run, or waiting-NUMBER, or lost-NODE; unique in its set"},
       [](const RunnerJobRow& j) { return json::value(j.id); }},
      {{"set", Text(), "service and name"}, [](const RunnerJobRow& j) { return json::value(j.set); }},
      {{"state", OneOf(listing::RunnerJobStates()), "of the run; waiting: without one; lost: with its node",
        false, listing::Kind::kState},
       [](const RunnerJobRow& j) { return json::value(j.state); }},
      {{"since", Number().OrNull(), "of the state, in seconds since the epoch, as all times"},
       [](const RunnerJobRow& j) { return RunnerTime(j.since); }},
      {{"repository", Text().OrNull(), "owner and name; null: the runner has no job yet"},
       [](const RunnerJobRow& j) { return RunnerText(j.job.repository); }},
      {{"workflow", Text().OrNull(), "its file or name"},
       [](const RunnerJobRow& j) { return RunnerText(j.job.workflow); }},
      {{"job", Text().OrNull(), "its name"}, [](const RunnerJobRow& j) { return RunnerText(j.job.job); }},
      {{"run_url", Text().OrNull(), "where the service shows it; begins with https://"},
       [](const RunnerJobRow& j) { return RunnerText(j.job.run_url); }},
      {{"node", Text().OrNull(), "that it runs on, or ran on"},
       [](const RunnerJobRow& j) { return RunnerText(j.node.value); }},
      {{"runner", Text().OrNull(), "its name in the service"},
       [](const RunnerJobRow& j) { return RunnerText(j.runner); }},
      {{"why", Text().OrNull(), "it waits, or was lost: a sentence"},
       [](const RunnerJobRow& j) { return RunnerText(j.why); }},
      {{"queued_at", Number().OrNull(), "when it entered the service's queue"},
       [](const RunnerJobRow& j) { return RunnerTime(j.job.queued_time); }},
      {{"assigned_at", Number().OrNull(), "when the set got it"},
       [](const RunnerJobRow& j) { return RunnerTime(j.job.assigned_time); }},
      {{"wanted_at", Number().OrNull(), "when the runner's node was requested"},
       [](const RunnerJobRow& j) { return RunnerTime(j.wanted_time); }},
      {{"node_at", Number().OrNull(), "when it got the node"},
       [](const RunnerJobRow& j) { return RunnerTime(j.node_time); }},
      {{"online_at", Number().OrNull(), "when the runner was online"},
       [](const RunnerJobRow& j) { return RunnerTime(j.online_time); }},
      {{"first_step_at", Number().OrNull(), "when the job began on the node"},
       [](const RunnerJobRow& j) { return RunnerTime(j.job_time); }},
  });
  return fields;
}

}  // namespace nodepool::web
