#include "builder/build_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/shield.h"
#include "builder/build_command.h"
#include "builder/stats_metrics.h"
#include "builder/view.h"
#include "config/disk_images.h"

namespace nodepool::builder {

struct BuildWorker::Outcome {
  int code = 1;
  bool is_ready = false;
  std::string fault;  // why it is not ready
  Duration took{0};
};

// A build under way.
struct BuildWorker::Job {
  store::StoredBuild build;
  zk::HeldLock lock;
  config::DiskImage image;  // as configured when it began
  // The request that it serves: the one that was there when it began.
  std::optional<store::Revision> request;
};

BuildWorker::BuildWorker(Context& context)
    : Worker(context, "nodepool.builder.BuildWorker.0"),
      retries_(context.intervals.first_retry, context.intervals.last_retry) {}

// The image's configuration, and the request for a build, if any.
std::string BuildWorker::Circumstances(const ImageName& image) const {
  std::string text = config::Fingerprint(context_.config->common.diskimages.at(image));
  const auto& requests = context_.images.build_requests();
  auto request = requests.find(image);
  if (request != requests.end()) text += fmt::format(" {}", ToSeconds(request->second));
  return text;
}

SteadyTime BuildWorker::Consider() {
  SteadyTime now = context_.loop.SteadyNow();
  SteadyTime next = SteadyTime::max();
  for (const config::DiskImage* image : config::AsListed(context_.config->common.diskimages)) {
    const ImageName& name = image->name;
    if (building_.contains(name)) continue;
    sched::BuildDecision decision =
        DecideBuild(ViewOf(context_, name), *WishOf(*context_.config, name), context_.loop.Now());
    if (decision.due_at) next = std::min(next, now + (*decision.due_at - context_.loop.Now()));
    if (!decision.reason) continue;
    std::string circumstances = Circumstances(name);
    if (auto retry_at = retries_.WaitsUntil(name, circumstances, now)) {
      next = std::min(next, *retry_at);
      continue;
    }
    if (std::ssize(building_) >= context_.most_builds()) continue;
    building_.insert(name);
    jobs_.Spawn("build image " + name.value, Build(name, std::move(circumstances)));
  }
  return next;
}

Task<> BuildWorker::Build(ImageName image, std::string circumstances) {
  std::exception_ptr error;
  bool is_done = false;
  try {
    std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLock(image);
    if (lock) {
      Task<bool> work = BuildLocked(image, *lock);
      is_done = co_await context_.store.tree.Holding(*lock, std::move(work));
    }
  } catch (...) {
    error = std::current_exception();
  }
  building_.erase(image);
  Wake();
  if (error && VerdictOf(error) == Verdict::kCancelled) co_return;
  SteadyTime now = context_.loop.SteadyNow();
  if (error) {
    logger_.Error("Building image {}: {}", image, MessageOf(error));
    retries_.Failed(image, std::move(circumstances), now);
  } else if (!is_done) {
    retries_.NotYet(image, std::move(circumstances), now);
  }
}

// What the cache told may be old: the records are read again under the lock.
Task<bool> BuildWorker::IsStillDue(ImageName image, bool is_requested) {
  std::vector<store::StoredBuild> builds = co_await context_.store.images.ListBuilds(image);
  co_await RefreshLocal(context_);
  std::optional<sched::ImageWish> wish = WishOf(*context_.config, image);
  if (!wish) co_return false;
  sched::ImageView view = ViewOf(context_, image, builds);
  view.is_build_locked = false;  // by us
  view.is_requested = is_requested;
  sched::BuildDecision decision = DecideBuild(view, *wish, context_.loop.Now());
  if (decision.reason == sched::BuildReason::kRequested)
    logger_.Info("Manual build request for image {}", image);
  if (decision.reason) logger_.Info("Building image {}: {}", image, ToString(*decision.reason));
  co_return decision.reason.has_value();
}

Task<bool> BuildWorker::BuildLocked(ImageName image, zk::HeldLock lock) {
  std::optional<store::Revision> request = co_await context_.store.images.ReadBuildRequest(image);
  bool is_due = co_await IsStillDue(image, request.has_value());
  if (!is_due) co_return false;
  std::shared_ptr<const driver::LoadedConfig> config = context_.config;
  Job job{.build = {}, .lock = lock, .image = config->common.diskimages.at(image), .request = request};
  std::string circumstances = Circumstances(image);
  Task<store::StoredBuild> create = context_.store.images.CreateBuild(image, NewRecord(job.image), lock);
  job.build = co_await std::move(create);
  // From here on: died before the last write, the record stays `building` without a
  // lock; any builder's CleanupWorker removes it, and then ours the files.
  Outcome outcome;
  std::exception_ptr error;
  try {
    Task<Outcome> make = Make(job.build.id, config->common, job.image);
    outcome = co_await std::move(make);
  } catch (...) {
    error = std::current_exception();
    outcome.fault = MessageOf(error);
  }
  bool is_stopped = error && VerdictOf(error) == Verdict::kCancelled;
  if (!outcome.is_ready && !is_stopped) {
    Duration pause = retries_.Failed(image, std::move(circumstances), context_.loop.SteadyNow());
    logger_.Error("Build {} failed: {}. Next attempt in {} s", job.build.id, outcome.fault,
                  std::chrono::duration_cast<std::chrono::seconds>(pause).count());
  }
  if (outcome.is_ready) retries_.Succeeded(image);
  Task<> end = End(std::move(job), std::move(outcome));
  co_await StayAwake();
  co_await Shielded(std::move(end));
  co_return true;
}

ImageBuild BuildWorker::NewRecord(const config::DiskImage& image) const {
  ImageBuild record;
  record.state = ImageState::kBuilding;
  record.state_time = context_.loop.Now();
  record.builder = context_.identity.fqdn;
  record.builder_id = context_.identity.builder_id;
  record.formats = image.formats;
  record.username = record.python_path = std::nullopt;
  return record;
}

Task<BuildWorker::Outcome> BuildWorker::Make(store::BuildKey build, const config::Config& config,
                                             const config::DiskImage& image) {
  SteadyTime start = context_.loop.SteadyNow();
  Task<std::string> start_log =
      context_.files.StartLog(config.build_log_dir, build, config.build_log_retention);
  std::string log = co_await std::move(start_log);
  Task<Outcome> run = RunCommands(build, config, image, std::move(log));
  Outcome outcome = co_await std::move(run);
  outcome.took = context_.loop.SteadyNow() - start;
  if (outcome.code == 0 && outcome.fault.empty()) {
    outcome.fault = co_await FindMissing(build, image.formats);
    outcome.is_ready = outcome.fault.empty();
  }
  co_return outcome;
}

Task<BuildWorker::Outcome> BuildWorker::RunCommands(store::BuildKey build, const config::Config& config,
                                                    const config::DiskImage& image, std::string log) {
  BuildSurroundings surroundings{context_.environment, context_.identity.helpers};
  BuildPlan plan = PlanBuild(config, image, build, surroundings);
  SteadyTime end = context_.loop.SteadyNow() + image.build_timeout;
  Outcome outcome;
  outcome.code = 0;
  for (process::Command& command : plan.commands) {
    command.log_path = log;
    command.timeout = end - context_.loop.SteadyNow();
    command.grace = context_.intervals.stop_grace;
    command.has_own_mounts = true;
    std::string program = command.argv.front();
    logger_.Info("Running {} for build {}", program, build);
    logger_.Info("Logging to {}", log);
    Task<process::Exit> run = context_.runner.Run(std::move(command));
    process::Exit exit = co_await std::move(run);
    outcome.code = exit.is_timed_out ? 1 : exit.code;
    if (exit.is_timed_out) {
      outcome.fault = fmt::format("{} took longer than build-timeout", program);
      co_return outcome;
    }
    if (exit.code != 0) {
      outcome.fault = fmt::format("{} ended with {}; see {}", program, exit.code, log);
      break;
    }
  }
  std::string line = fmt::format("Exit code: {}\n", outcome.code);
  co_await context_.files.AppendToLog(log, std::move(line));
  if (outcome.code != 0) co_return outcome;
  for (const std::string& format : plan.without_checksums) {
    std::string path = fmt::format("{}.{}", LocalBase(*config.images_dir, build), format);
    co_await context_.files.WriteChecksums(std::move(path));
  }
  co_return outcome;
}

// A command that promises too much makes no build.
Task<std::string> BuildWorker::FindMissing(store::BuildKey build, std::vector<std::string> formats) {
  co_await RefreshLocal(context_);
  const auto& images = context_.local[build];
  for (const std::string& format : formats) {
    if (!images.contains(format)) co_return fmt::format("it made no {} file", format);
  }
  co_return std::string();
}

Task<> BuildWorker::End(Job job, Outcome outcome) {
  Task<bool> record = Record(job, outcome);
  bool is_recorded = co_await std::move(record);
  if (!outcome.is_ready) co_await RemoveTemporary(context_);
  if (!is_recorded) co_return;
  if (outcome.is_ready && job.request) {
    co_await context_.store.images.RemoveBuildRequest(job.build.id.image, *job.request);
  }
  Task<> report = Report(job.build, outcome);
  co_await std::move(report);
}

// Whether it could be recorded. If not, nobody will ever want the files.
Task<bool> BuildWorker::Record(Job& job, const Outcome& outcome) {
  std::exception_ptr error;
  try {
    auto change = [&](ImageBuild& record) {
      record.state = outcome.is_ready ? ImageState::kReady : ImageState::kFailed;
      record.state_time = context_.loop.Now();
      record.username = job.image.username;
      record.python_path = job.image.python_path;
      record.shell_type = job.image.shell_type;
      if (!outcome.is_ready) record.formats.clear();
      return store::Change::kWrite;
    };
    co_await context_.store.images.Update(job.build, job.lock, change);
  } catch (...) {
    error = std::current_exception();
  }
  const store::BuildKey& build = job.build.id;
  if (error) {
    logger_.Error("Build {} is thrown away, its end cannot be recorded: {}", build, MessageOf(error));
    co_await context_.files.RemoveBuild(context_.images_dir(), build);
    co_return false;
  }
  if (outcome.is_ready) logger_.Info("DIB image {} is built: build {}", build.image, build);
  co_return true;
}

Task<> BuildWorker::Report(store::StoredBuild build, Outcome outcome) {
  const std::string& image = build.id.image.value;
  if (outcome.is_ready) {
    std::map<std::string, std::string> images = context_.local[build.id];
    for (const auto& [format, path] : images) {
      if (std::ranges::find(build.record.formats, format) == build.record.formats.end()) continue;
      std::uint64_t size = co_await context_.files.AllocatedSize(path);
      context_.metrics.Set(stats::kBuildSize, {image, format}, static_cast<double>(size));
    }
  }
  context_.metrics.Observe(stats::kBuildDuration, {image}, outcome.took);
  context_.metrics.Set(stats::kBuildCode, {image}, outcome.code);
  context_.metrics.Set(stats::kLastBuild, {image}, ToSeconds(context_.loop.Now()));
}

}  // namespace nodepool::builder
