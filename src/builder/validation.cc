#include "builder/validation.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/deadline.h"
#include "async/event.h"
#include "async/task.h"
#include "base/text.h"
#include "driver/provider_environment.h"
#include "model/image.h"
#include "model/node_request.h"
#include "store/record_kinds.h"

namespace nodepool::builder {
namespace {

using store::Change;

constexpr std::string_view kPrecedence = "200";  // as most requests have
// The launcher that has fulfilled the request gives up its lock with that.
constexpr Duration kLockLimit = std::chrono::seconds(30);

// One validation from the request for a machine to the machine's end.
class Run {
 public:
  // Both outlive it.
  Run(Context& context, log::Logger logger, const Validation& validation)
      : context_(context),
        logger_(std::move(logger)),
        validation_(validation),
        deadline_(context.loop.SteadyNow() + validation.settings.timeout) {}

  Task<> InTime() {
    auto use = [this](RequestId& request) { return BootAndCheck(request); };
    // A request that was served is gone already.
    auto withdraw = [this](RequestId& request) { return context_.store.requests.Delete(request); };
    Task<> all = Bracket(RequestMachine(), use, withdraw);
    return WithDeadline(context_.loop, deadline_, "booting and checking a machine of the image",
                        std::move(all));
  }

 private:
  Task<RequestId> RequestMachine() {
    const store::UploadKey& upload = validation_.upload;
    NodeRequest request = ValidationRequest(validation_.label, upload.provider,
                                            {upload.build.build, upload.upload}, context_.loop.Now());
    co_await validation_.note("validating: waiting for a machine");
    Task<RequestId> creation =
        context_.store.requests.Create(std::string(kPrecedence), std::move(request), true);
    RequestId id = co_await std::move(creation);
    logger_.About(log::OfRequest(id)).Info("Upload {} is validated: a machine of it is requested", upload);
    co_return id;
  }

  Task<> BootAndCheck(RequestId id) {
    NodeRequest answer = co_await AwaitAnswer(id);
    if (answer.state == RequestState::kFailed)
      throw Error(Verdict::kFail, "no machine of it could be booted: " + WhyFailed(answer));
    auto check = [this](store::LockedNode& node) { return Check(node); };
    auto give_back = [this](store::LockedNode& node) { return GiveBack(node); };
    Task<store::LockedNode> take = Take(std::move(id), std::move(answer));
    co_await Bracket(std::move(take), check, give_back);
  }

  Task<NodeRequest> AwaitAnswer(RequestId id) {
    zk::Client& client = context_.store.tree.client();
    // A watch may be called after this has ended.
    auto changed = std::make_shared<Event>("a launcher's answer to the request for a machine");
    while (true) {
      changed->Reset();
      auto watcher = [changed](const zk::WatchEvent&) { changed->Set(); };
      co_await client.ExistsAndWatch(store::paths::Request(id), watcher);
      std::optional<store::StoredRequest> found = co_await context_.store.requests.Read(id);
      if (!found) throw Error(Verdict::kFail, "another program has deleted the request for a machine");
      bool is_decided =
          found->record.state == RequestState::kFulfilled || found->record.state == RequestState::kFailed;
      if (is_decided) co_return std::move(found->record);
      co_await changed->Wait();
    }
  }

  // What a consumer does with a fulfilled request (coordination.md 12.1).
  Task<store::LockedNode> Take(RequestId id, NodeRequest answer) {
    if (answer.nodes.empty()) throw Error(Verdict::kFail, "the request was fulfilled without a node");
    const NodeId node_id = answer.nodes.front();
    SteadyTime limit = context_.loop.SteadyNow() + kLockLimit;
    std::optional<store::LockedNode> node = co_await context_.store.nodes.Lock(node_id, limit);
    if (!node) throw Error(Verdict::kFail, fmt::format("node {} is locked by another program", node_id));
    auto unlock = [&node](const Failure&) { return node->Unlock(); };
    co_await OnFailure(Use(std::move(id), *node), unlock);
    co_return std::move(*node);
  }

  Task<> Use(RequestId id, store::LockedNode& node) {
    const std::string image = store::Images::UploadPath(validation_.upload);
    if (node.record().allocated_to != id)
      throw Error(Verdict::kFail, fmt::format("node {} is not of the request any more", node.id()));
    const std::string booted = node.record().image_id.value_or("");
    if (booted != image) {
      throw Error(Verdict::kFail, fmt::format("node {} was booted from {} instead", node.id(),
                                              booted.empty() ? "another image" : Excerpt(booted)));
    }
    WallTime now = context_.loop.Now();
    auto use = [now](Node& record) {
      record.SetState(NodeState::kInUse, now);
      return Change::kWrite;
    };
    co_await node.Update(use);
    co_await context_.store.requests.Delete(std::move(id));
  }

  Task<> GiveBack(store::LockedNode& node) {
    WallTime now = context_.loop.Now();
    auto give_back = [now](Node& record) {
      record.SetState(NodeState::kUsed, now);
      return Change::kWrite;
    };
    co_await node.Update(give_back);
    co_await node.Unlock();
  }

  Task<> Check(store::LockedNode& node) {
    co_await validation_.note(fmt::format("validating: node {} has booted and is checked", node.id()));
    if (!validation_.settings.command) co_return;
    process::Command command;
    command.argv = process::SplitWords(*validation_.settings.command);
    command.environment = EnvironmentFor(node.id(), node.record());
    command.timeout = deadline_ - context_.loop.SteadyNow();
    Task<process::Exit> run = context_.runner.Run(std::move(command));
    process::Exit exit = co_await std::move(run);
    logger_.About(log::OfNode(node.id()))
        .Info("The check of upload {} ended with {}: {}", validation_.upload, exit.code, exit.output);
    if (exit.is_good()) co_return;
    throw Error(Verdict::kFail,
                fmt::format("the check of its machine ended with {}{}{}", exit.code,
                            exit.is_timed_out ? ", out of time" : "", driver::LastSaid(exit.output)));
  }

  process::Environment EnvironmentFor(const NodeId& id, const Node& node) const {
    process::Environment environment = driver::MachineEnvironment(context_.environment, id, node);
    const store::UploadKey& upload = validation_.upload;
    environment["NODEPOOL_IMAGE"] = upload.build.image.value;
    environment["NODEPOOL_BUILD"] = upload.build.build.value;
    environment["NODEPOOL_PROVIDER"] = upload.provider.value;
    environment["NODEPOOL_EXTERNAL_ID"] = validation_.external_id;
    return environment;
  }

  Context& context_;
  log::Logger logger_;
  const Validation& validation_;
  SteadyTime deadline_;
};

}  // namespace

std::optional<LabelName> ValidationLabelOf(const driver::ProviderConfig& provider, const ImageName& image) {
  for (const auto& [pool_name, pool] : provider.pools) {
    if (pool->max_servers <= 0) continue;  // disabled: it declines everything
    for (const auto& [name, label] : pool->labels) {
      if (IsValidationLabel(name) && label->diskimage == image) return name;
    }
  }
  return std::nullopt;
}

Task<> Validate(Context& context, log::Logger logger, Validation validation) {
  Run run(context, std::move(logger), validation);
  co_await run.InTime();
}

}  // namespace nodepool::builder
