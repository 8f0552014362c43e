#include "web/actions/action_endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "async/deadline.h"
#include "async/task.h"
#include "base/text.h"
#include "operate/actions.h"
#include "web/api/api_fields.h"
#include "web/request_bodies.h"

namespace nodepool::web {
namespace {

using config::Scope;
using operate::Done;

constexpr Duration kActionTimeout = std::chrono::seconds(10);
// How long an action waits for a node's lock.
constexpr Duration kLockWait = std::chrono::seconds(1);

// The texts in the path, in its order.
using PathParameters = std::vector<std::string>;

// What became of an action.
struct ActionResult {
  std::expected<void, Error> readable;  // the error of what was sent
  Done done;
  std::string entry;       // in JSON; empty: it is gone
  std::string about = "";  // for the audit log, of what has no name in the path
};

// How an action is offered.
struct Action {
  const char* method;
  const char* path;
  const char* what;  // for the audit log; the parameters of the path follow
  int success;       // 200: done; 202: a launcher or builder goes on
  EndpointDoc doc;
};

template <class T>
std::string TextOf(const FieldTable<T>& fields, const T& entry, WallTime now) {
  listing::AgedText row;
  fields.Append(row, entry);
  std::string text;
  row.AppendTo(text, now);
  return text;
}

// The handlers, and what they share.
class ActionHandlers {
 public:
  ActionHandlers(Loop& loop, launcher::Launcher& launcher, Access& access)
      : loop_(loop), launcher_(launcher), access_(access) {}

  using Step = Task<ActionResult> (ActionHandlers::*)(const Request&, const Caller&, PathParameters);

  // Runs `step` for an operator, and writes to the audit log what became of it.
  Task<Response> Handle(Request request, const Action& action, Step step);

  Task<ActionResult> HoldNode(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> EndHold(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> DeleteNode(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> BuildImage(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> PauseImage(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> UnpauseImage(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> DeleteBuild(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> DeleteUpload(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> RetryUpload(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> PauseProvider(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> UnpauseProvider(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> CreateJob(const Request& request, const Caller& caller, PathParameters parameters);
  Task<ActionResult> DeleteJob(const Request& request, const Caller& caller, PathParameters parameters);

 private:
  using NodeChange = Task<Done> (*)(Loop&, store::Store&, NodeId, Duration);

  Task<ActionResult> ChangeNode(const Request& request, std::string id, NodeChange change);
  Task<ActionResult> ShowNode(Done done, NodeId id);
  Task<ActionResult> ShowImage(Done done, ImageName image);
  Task<ActionResult> ShowProvider(Done done, ProviderName provider);
  Response Answer(const Request& request, const Action& action, ActionResult result) const;

  Loop& loop_;
  launcher::Launcher& launcher_;
  Access& access_;
};

std::string ResultOf(const ActionResult& result) {
  if (!result.readable) return "refused: " + result.readable.error().message();
  return result.done ? "done" : "refused: " + result.done.error().why;
}

Task<Response> ActionHandlers::Handle(Request request, const Action& action, Step step) {
  std::expected<Caller, Response> caller = co_await access_.Identify(request);
  if (!caller) co_return std::move(caller.error());
  PathParameters parameters = ParametersIn(request.path, action.path);
  std::string what = fmt::format("{} {}", action.what, Excerpt(Join(parameters, " "), 300));
  if (!caller->may(Scope::kOperate)) {
    access_.Audit(*caller, what + ": refused, the scope operate is missing");
    co_return ErrorResponse(request, 403,
                            fmt::format("The token {} lacks the scope operate.", caller->name()));
  }
  if (!launcher_.records().synced()) co_return ErrorResponse(request, 503, store::Caches::kNotComplete);
  SteadyTime deadline = loop_.SteadyNow() + kActionTimeout;
  Task<ActionResult> work = (this->*step)(request, *caller, std::move(parameters));
  Outcome<ActionResult> result =
      co_await Attempt(WithDeadline(loop_, deadline, action.what, std::move(work)));
  std::string outcome = result ? ResultOf(*result) : "failed: " + result.error().message();
  if (result) what += Excerpt(result->about, 300);
  access_.Audit(*caller, fmt::format("{}: {}", what, outcome));
  if (!result) co_return ErrorResponse(request, 503, result.error().message());
  co_return Answer(request, action, std::move(*result));
}

Response ActionHandlers::Answer(const Request& request, const Action& action, ActionResult result) const {
  if (!result.readable) return RefuseBody(request, result.readable.error());
  if (!result.done) {
    bool is_missing = result.done.error().kind == operate::Refusal::Kind::kNotFound;
    return ErrorResponse(request, is_missing ? 404 : 409, result.done.error().why + ".");
  }
  Response response = UncachedJson(action.success, std::move(result.entry));
  if (response.body.empty()) response.status = 204;
  return response;
}

Task<ActionResult> ActionHandlers::ShowNode(Done done, NodeId id) {
  ActionResult result{{}, std::move(done), ""};
  if (!result.done) co_return result;
  co_await launcher_.CatchUp();
  const store::StoredNode* node = launcher_.records().nodes.Find(id);
  if (node != nullptr) result.entry = TextOf(NodeFields(), *node, loop_.Now());
  co_return result;
}

Task<ActionResult> ActionHandlers::ShowImage(Done done, ImageName image) {
  ActionResult result{{}, std::move(done), ""};
  if (!result.done) co_return result;
  co_await launcher_.CatchUp();
  if (launcher_.records().images.images().contains(image))
    result.entry = TextOf(ImageFields(), EntryOf(launcher_, image), loop_.Now());
  co_return result;
}

Task<ActionResult> ActionHandlers::ShowProvider(Done done, ProviderName provider) {
  ActionResult result{{}, std::move(done), ""};
  if (!result.done) co_return result;
  co_await launcher_.CatchUp();
  std::vector<launcher::ProviderStatus> all = launcher_.Providers();
  auto found = std::ranges::find(all, provider, &launcher::ProviderStatus::name);
  if (found != all.end()) result.entry = TextOf(ProviderFields(), *found, loop_.Now());
  co_return result;
}

Task<ActionResult> ActionHandlers::ChangeNode(const Request& request, std::string text, NodeChange change) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  std::optional<NodeId> id = operate::ParseNodeId(text);
  if (!id)
    co_return ActionResult{{}, operate::NotFound(fmt::format("Node id {} not found", Excerpt(text))), ""};
  Done done = co_await change(loop_, launcher_.store(), *id, kLockWait);
  ActionResult result = co_await ShowNode(std::move(done), *id);
  co_return result;
}

Task<ActionResult> ActionHandlers::HoldNode(const Request& request, const Caller&,
                                            PathParameters parameters) {
  Expected<operate::HoldOrder> order = ReadHoldOrder(request);
  if (!order) co_return ActionResult{std::unexpected(order.error()), {}, ""};
  std::optional<NodeId> id = operate::ParseNodeId(parameters[0]);
  if (!id)
    co_return ActionResult{
        {}, operate::NotFound(fmt::format("Node id {} not found", Excerpt(parameters[0]))), ""};
  Done done = co_await operate::HoldNode(loop_, launcher_.store(), *id, *order, kLockWait);
  ActionResult result = co_await ShowNode(std::move(done), *id);
  co_return result;
}

Task<ActionResult> ActionHandlers::EndHold(const Request& request, const Caller&, PathParameters parameters) {
  return ChangeNode(request, parameters[0], &operate::EndHold);
}

Task<ActionResult> ActionHandlers::DeleteNode(const Request& request, const Caller&,
                                              PathParameters parameters) {
  return ChangeNode(request, parameters[0], &operate::DeleteNode);
}

Task<ActionResult> ActionHandlers::BuildImage(const Request& request, const Caller&,
                                              PathParameters parameters) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  std::shared_ptr<const driver::LoadedConfig> config = launcher_.config();
  ImageName image(parameters[0]);
  Done done = co_await operate::RequestBuild(launcher_.store(), *config, image);
  ActionResult result = co_await ShowImage(std::move(done), image);
  co_return result;
}

Task<ActionResult> ActionHandlers::PauseImage(const Request& request, const Caller&,
                                              PathParameters parameters) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  ImageName image(parameters[0]);
  Done done = co_await operate::PauseImage(launcher_.store(), image);
  ActionResult result = co_await ShowImage(std::move(done), image);
  co_return result;
}

Task<ActionResult> ActionHandlers::UnpauseImage(const Request& request, const Caller&,
                                                PathParameters parameters) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  ImageName image(parameters[0]);
  bool is_known = launcher_.records().images.images().contains(image);
  if (!is_known)
    co_return ActionResult{
        {}, operate::NotFound(fmt::format("There is no image {}", Excerpt(image.value))), ""};
  co_await operate::UnpauseImage(launcher_.store(), image);
  ActionResult result = co_await ShowImage(Done(), image);
  co_return result;
}

Task<ActionResult> ActionHandlers::DeleteBuild(const Request& request, const Caller&,
                                               PathParameters parameters) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  store::BuildKey key{ImageName(parameters[0]), BuildId(parameters[1])};
  ActionResult result;
  result.done = co_await operate::DeleteBuild(loop_, launcher_.store(), key);
  if (!result.done) co_return result;
  co_await launcher_.CatchUp();
  const auto& builds = launcher_.records().images.builds();
  if (auto build = builds.find(key); build != builds.end())
    result.entry = TextOf(BuildFields(), build->second, loop_.Now());
  co_return result;
}

Task<ActionResult> ActionHandlers::DeleteUpload(const Request& request, const Caller&,
                                                PathParameters parameters) {
  Expected<bool> is_forced = ReadForce(request);
  if (!is_forced) co_return ActionResult{std::unexpected(is_forced.error()), {}, ""};
  store::UploadKey key{{ImageName(parameters[0]), BuildId(parameters[1])},
                       ProviderName(parameters[2]),
                       UploadId(parameters[3])};
  ActionResult result;
  result.done = co_await operate::DeleteUpload(loop_, launcher_.store(), key, *is_forced);
  if (!result.done) co_return result;
  co_await launcher_.CatchUp();
  const auto& uploads = launcher_.records().images.uploads();
  if (auto upload = uploads.find(key); upload != uploads.end())
    result.entry = TextOf(UploadFields(), upload->second, loop_.Now());
  co_return result;
}

Task<ActionResult> ActionHandlers::RetryUpload(const Request& request, const Caller&,
                                               PathParameters parameters) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  std::shared_ptr<const driver::LoadedConfig> config = launcher_.config();
  ImageName image(parameters[0]);
  ProviderName provider(parameters[1]);
  std::expected<bool, operate::Refusal> asked =
      co_await operate::RetryUpload(launcher_.store(), *config, image, provider);
  Done done;
  if (!asked) done = std::unexpected(asked.error());
  if (asked && !*asked) done = operate::Conflict(fmt::format("{} has the newest build already", provider));
  ActionResult result = co_await ShowImage(std::move(done), image);
  co_return result;
}

Task<ActionResult> ActionHandlers::PauseProvider(const Request& request, const Caller& caller,
                                                 PathParameters parameters) {
  Expected<PauseOrder> order = ReadPauseOrder(request);
  if (!order) co_return ActionResult{std::unexpected(order.error()), {}, ""};
  std::shared_ptr<const driver::LoadedConfig> config = launcher_.config();
  ProviderName provider(parameters[0]);
  ProviderPause pause{order->reason, order->is_drained, caller.name(), std::nullopt, {}};
  Done done = co_await operate::PauseProvider(loop_, launcher_.store(), *config, provider, pause);
  ActionResult result = co_await ShowProvider(std::move(done), provider);
  co_return result;
}

Task<ActionResult> ActionHandlers::UnpauseProvider(const Request& request, const Caller&,
                                                   PathParameters parameters) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  ProviderName provider(parameters[0]);
  Done done = co_await operate::UnpauseProvider(launcher_.store(), provider);
  ActionResult result = co_await ShowProvider(std::move(done), provider);
  co_return result;
}

Task<ActionResult> ActionHandlers::CreateJob(const Request& request, const Caller&, PathParameters) {
  Expected<JobRule> rule = ReadJobRule(request);
  if (!rule) co_return ActionResult{std::unexpected(rule.error()), {}, ""};
  std::string name = rule->name;
  for (const auto& [id, known] : launcher_.records().jobs.rules()) {
    if (known.record.name != name) continue;
    std::string why = fmt::format("Rule {} is about job {} already; delete it first", id, Excerpt(name));
    co_return ActionResult{{}, operate::Conflict(std::move(why)), "", name};
  }
  JobId id = co_await launcher_.store().jobs.CreateRule(std::move(*rule));
  co_await launcher_.CatchUp();
  ActionResult result{{}, {}, "", std::move(name)};
  const store::Caches& records = launcher_.records();
  auto made = records.jobs.rules().find(id);
  if (made != records.jobs.rules().end())
    result.entry = TextOf(JobFields(), JobEntry{made->second, records.nodes, records.jobs}, loop_.Now());
  co_return result;
}

Task<ActionResult> ActionHandlers::DeleteJob(const Request& request, const Caller&,
                                             PathParameters parameters) {
  Expected<void> nothing = ReadNothing(request);
  if (!nothing) co_return ActionResult{std::unexpected(nothing.error()), {}, ""};
  bool is_deleted = co_await launcher_.store().jobs.DeleteRule(JobId(parameters[0]));
  if (!is_deleted)
    co_return ActionResult{
        {}, operate::NotFound(fmt::format("There is no rule {}", Excerpt(parameters[0]))), ""};
  co_await launcher_.CatchUp();
  co_return ActionResult();
}

ParameterDoc Place(std::string name, std::string text) {
  return {std::move(name), std::move(text), Text(), false, ParameterDoc::Place::kPath};
}

// Of an action that takes nothing but its path.
template <class T>
EndpointDoc EntryDoc(std::string list, std::string summary, std::vector<ParameterDoc> parameters,
                     const FieldTable<T>& answer, int success) {
  EndpointDoc doc{std::move(summary),
                  std::move(parameters),
                  {{"application/json", answer.type()}},
                  {400, 401, 403, 404, 409, 415, 429, 503}};
  doc.successes = {success};
  doc.entry_of = "GET /api/v1/" + list;
  return doc;
}

EndpointDoc DeletionDoc(std::string summary, ParameterDoc place) {
  EndpointDoc doc{std::move(summary), {std::move(place)}, {}, {400, 401, 403, 404, 409, 415, 429, 503}};
  doc.successes = {204};
  return doc;
}

template <class T>
EndpointDoc EntryDoc(std::string list, std::string summary, std::vector<ParameterDoc> parameters,
                     const FieldTable<T>& answer, int success, JsonType body) {
  EndpointDoc doc = EntryDoc(std::move(list), std::move(summary), std::move(parameters), answer, success);
  doc.body = std::move(body);
  return doc;
}

std::vector<std::pair<Action, ActionHandlers::Step>> Actions() {
  ParameterDoc node = Place("id", "of the node; leading zeros may be left out");
  ParameterDoc image = Place("image", "name of the image");
  ParameterDoc build = Place("build", "id of the build");
  ParameterDoc provider = Place("provider", "name of the provider");
  ParameterDoc upload = Place("upload", "id of the upload");
  ParameterDoc force{"force", "true: the record is removed at once; the cloud's image is deleted as a leak",
                     Flag()};
  using Handlers = ActionHandlers;
  return {
      {{"POST", "/api/v1/nodes/{id}/hold", "hold node", 200,
        EntryDoc("nodes", "Keeps a node for a person to inspect.", {node}, NodeFields(), 200,
                 HoldOrderType())},
       &Handlers::HoldNode},
      {{"POST", "/api/v1/nodes/{id}/unhold", "unhold node", 202,
        EntryDoc("nodes", "Gives a held node back; it is deleted.", {node}, NodeFields(), 202)},
       &Handlers::EndHold},
      {{"DELETE", "/api/v1/nodes/{id}", "delete node", 202,
        EntryDoc("nodes", "Deletes a node.", {node}, NodeFields(), 202)},
       &Handlers::DeleteNode},
      {{"POST", "/api/v1/images/{image}/build", "build image", 202,
        EntryDoc("images", "Asks for a new build of an image.", {image}, ImageFields(), 202)},
       &Handlers::BuildImage},
      {{"POST", "/api/v1/images/{image}/pause", "pause image", 200,
        EntryDoc("images", "Stops building an image.", {image}, ImageFields(), 200)},
       &Handlers::PauseImage},
      {{"POST", "/api/v1/images/{image}/unpause", "unpause image", 200,
        EntryDoc("images", "Builds an image again.", {image}, ImageFields(), 200)},
       &Handlers::UnpauseImage},
      {{"DELETE", "/api/v1/images/{image}/builds/{build}", "delete build", 202,
        EntryDoc("builds", "Deletes a build with its uploads.", {image, build}, BuildFields(), 202)},
       &Handlers::DeleteBuild},
      {{"DELETE", "/api/v1/images/{image}/builds/{build}/uploads/{provider}/{upload}", "delete upload", 202,
        EntryDoc("uploads", "Deletes an upload; that of the newest build is made again.",
                 {image, build, provider, upload, force}, UploadFields(), 202)},
       &Handlers::DeleteUpload},
      {{"POST", "/api/v1/images/{image}/uploads/{provider}/retry", "retry upload", 202,
        EntryDoc(
            "images",
            "Uploads the newest build of an image to a provider that lacks it, without the pause after a "
            "failure.",
            {image, provider}, ImageFields(), 202)},
       &Handlers::RetryUpload},
      {{"POST", "/api/v1/providers/{provider}/pause", "pause provider", 200,
        EntryDoc("providers", "Has all launchers take no requests and launch nothing in a provider.",
                 {provider}, ProviderFields(), 200, PauseOrderType())},
       &Handlers::PauseProvider},
      {{"POST", "/api/v1/providers/{provider}/unpause", "unpause provider", 200,
        EntryDoc("providers", "Has launchers use a paused provider again.", {provider}, ProviderFields(),
                 200)},
       &Handlers::UnpauseProvider},
      {{"POST", "/api/v1/jobs", "create rule about job", 201,
        EntryDoc("jobs", "Has nodes held on which a job fails.", {}, JobFields(), 201, JobRuleType())},
       &Handlers::CreateJob},
      {{"DELETE", "/api/v1/jobs/{id}", "delete rule about job", 204,
        DeletionDoc("Deletes a rule about a job; what is held stays held.", Place("id", "of the rule"))},
       &Handlers::DeleteJob},
  };
}

}  // namespace

std::vector<Endpoint> ActionEndpoints(Loop& loop, launcher::Launcher& launcher, Access& access) {
  auto handlers = std::make_shared<ActionHandlers>(loop, launcher, access);
  std::vector<Endpoint> endpoints;
  for (auto& [action, step] : Actions()) {
    auto kept = std::make_shared<const Action>(std::move(action));
    auto handle = [handlers, kept, step = step](Request request) {
      return handlers->Handle(std::move(request), *kept, step);
    };
    Endpoint endpoint{kept->method, kept->path, handle, kept->doc};
    endpoint.callers = Endpoint::Callers::kTokens;
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace nodepool::web
