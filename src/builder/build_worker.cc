#include "builder/build_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "async/task.h"
#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "builder/context.h"
#include "builder/metrics.h"
#include "config/disk_images.h"

namespace nodepool::builder {

namespace {

constexpr const char* kQcow2 = "qcow2";
// What disk-image-create makes without qemu-img, or with a tool that ignores the options.
const std::set<std::string>& FormatsWithoutQemuImg() {
  static const std::set<std::string> formats = {"raw", "tar", "tgz", "vhd", "docker", "squashfs", "aci"};
  return formats;
}

void Replace(std::string& text, std::string_view what, const std::string& by) {
  for (std::size_t place = text.find(what); place != std::string::npos;
       place = text.find(what, place + by.size())) {
    text.replace(place, what.size(), by);
  }
}

process::Environment EnvironmentOf(const config::Config& config, const config::DiskImage& image,
                                   const std::string& base, process::Environment environment) {
  environment["DIB_RELEASE"] = image.release;
  environment["DIB_IMAGE_NAME"] = image.name.value;
  environment["DIB_IMAGE_FILENAME"] = base;
  if (config.elements_dir) environment["ELEMENTS_PATH"] = *config.elements_dir;
  for (const auto& [key, value] : image.env_vars) environment[key] = value;
  return environment;
}

std::vector<std::string> Words(const std::vector<std::string>& elements) {
  std::vector<std::string> words;
  for (const std::string& element : elements) {
    std::ranges::copy_if(Split(element, ' '), std::back_inserter(words),
                         [](const std::string& word) { return !word.empty(); });
  }
  return words;
}

}  // namespace

std::set<std::string> TemporaryFolders(const config::Config& config,
                                       const process::Environment& environment) {
  auto folder_in = [](const process::Environment& variables) -> std::string {
    for (const char* name : {"TMPDIR", "TMP_DIR"}) {
      auto found = variables.find(name);
      if (found != variables.end() && !found->second.empty()) return found->second;
    }
    return "/tmp";
  };
  std::set<std::string> folders{folder_in(environment)};
  for (const auto& [name, image] : config.diskimages)
    folders.insert(folder_in(EnvironmentOf(config, image, "", environment)));
  return folders;
}

std::string LocalBase(const std::string& images_dir, const store::BuildKey& build) {
  return fmt::format("{}/{}", images_dir, build.str());
}

BuildPlan PlanBuild(const config::Config& config, const config::DiskImage& image,
                    const store::BuildKey& build, const BuildContext& context) {
  std::string base = LocalBase(config.images_dir.value_or("."), build);
  process::Environment environment = EnvironmentOf(config, image, base, context.environment);
  BuildPlan plan;
  std::vector<std::string> formats = image.formats;
  bool has_qcow2 = std::ranges::find(formats, kQcow2) != formats.end();
  // disk-image-create applies qcow2's options to every conversion, and other formats refuse them (D-46).
  if (has_qcow2) {
    std::erase_if(formats, [&](const std::string& format) {
      bool is_later = format != kQcow2 && !FormatsWithoutQemuImg().contains(format);
      if (is_later) plan.without_checksums.push_back(format);
      return is_later;
    });
  }

  process::Command& make = plan.commands.emplace_back();
  std::string command = image.dib_cmd;
  Replace(command, "%p", context.helpers);
  make.argv = process::SplitWords(command);
  if (make.argv.empty()) throw Error(Verdict::kInvalid, "dib-cmd names no program");
  std::ranges::copy(std::vector<std::string>{"-x", "-t", Join(formats, ","), "--checksum", "--no-tmpfs"},
                    std::back_inserter(make.argv));
  bool wants_options = Join(formats, ",").find(kQcow2) != std::string::npos;
  if (wants_options) {
    make.argv.push_back("--qemu-img-options");
    make.argv.push_back("compat=0.10");
  }
  make.argv.push_back("-o");
  make.argv.push_back(base);
  std::ranges::copy(Words(image.elements), std::back_inserter(make.argv));
  make.environment = environment;

  for (const std::string& format : plan.without_checksums) {
    process::Command& convert = plan.commands.emplace_back();
    convert.argv = {"qemu-img",
                    "convert",
                    "-f",
                    kQcow2,
                    "-O",
                    format,
                    fmt::format("{}.{}", base, kQcow2),
                    fmt::format("{}.{}", base, format)};
    convert.environment = environment;
  }
  return plan;
}

namespace {

constexpr std::array<std::string_view, 10> kErrorWords = {
    "error", "fail", "fatal", "cannot", "can't", "could not", "not found", "no such", "no space", "denied"};
constexpr std::size_t kMostReason = 200;

// "2024-05-01 10:00:00.123 | text" (builder.md 20.2).
std::string_view WithoutTime(std::string_view line) {
  constexpr std::string_view kPattern = "0000-00-00 00:00:00.000 | ";
  if (line.size() < kPattern.size()) return line;
  for (std::size_t i = 0; i < kPattern.size(); ++i) {
    bool is_digit = line[i] >= '0' && line[i] <= '9';
    if (kPattern[i] == '0' ? !is_digit : line[i] != kPattern[i]) return line;
  }
  return line.substr(kPattern.size());
}

bool SpeaksOfError(std::string_view line) {
  std::string lower = Lower(line);
  return std::ranges::any_of(kErrorWords,
                             [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

std::string ReasonInLog(std::string_view log) {
  std::string_view last, last_error;
  for (std::size_t start = 0; start < log.size();) {
    std::size_t end = std::min(log.find('\n', start), log.size());
    std::string_view line = Trim(WithoutTime(log.substr(start, end - start)));
    start = end + 1;
    if (line.empty() || line.front() == '+') continue;
    last = line;
    if (SpeaksOfError(line)) last_error = line;
  }
  return Excerpt(last_error.empty() ? last : last_error, kMostReason);
}

namespace {

constexpr std::size_t kLogEnd = 64 * 1024;
constexpr std::size_t kMostError = 400;

// The program without its directory.
std::string_view NameOf(std::string_view program) { return program.substr(program.rfind('/') + 1); }

}  // namespace

struct BuildWorker::Result {
  int code = 1;
  bool is_ready = false;
  std::string fault;                           // why the build is not ready
  std::map<std::string, std::uint64_t> sizes;  // bytes that its files take up, by format
  Duration took{0};
};

// A build under way.
struct BuildWorker::Job {
  store::StoredBuild build;
  zk::HeldLock lock;
  std::shared_ptr<const driver::LoadedConfig> config;  // when it began
  config::DiskImage image;                             // as configured then
  // The request that it serves, which existed when it began.
  std::optional<store::Revision> request;
  std::string circumstances;
  Result result;
};

BuildWorker::BuildWorker(Context& context)
    : Worker(context, "nodepool.builder.BuildWorker.0"),
      retries_(context.intervals.first_retry, context.intervals.last_retry) {}

// Describes the image's configuration and the request for a build, if any.
std::string BuildWorker::Circumstances(const ImageName& image) const {
  std::string text = config::Fingerprint(context_.config->common.diskimages.at(image));
  const auto& requests = context_.caches.images.build_requests();
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
        DecideBuild(ViewOf(context_, name), *SpecOf(*context_.config, name), context_.loop.Now());
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
  ScopeExit ended([&] {
    building_.erase(image);
    Wake();
  });
  Outcome<bool> is_done = co_await Attempt(BuildOnce(image));
  SteadyTime now = context_.loop.SteadyNow();
  if (!is_done) {
    logger_.Error("Building image {}: {}", image, is_done.error().message());
    retries_.Failed(image, std::move(circumstances), now);
  } else if (!*is_done) {
    retries_.NotYet(image, std::move(circumstances), now);
  }
}

Task<bool> BuildWorker::BuildOnce(ImageName image) {
  if (std::optional<std::string_view> fault = config::ImageNameFault(image))
    throw Error(Verdict::kInvalid, fmt::format("its name {}; rename it", *fault));
  std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLock(image);
  if (!lock) co_return false;
  Task<bool> work = BuildLocked(image, *lock);
  bool is_done = co_await context_.store.tree.Holding(*lock, std::move(work));
  co_return is_done;
}

// The cache may be out of date: the records are read again under the lock.
Task<bool> BuildWorker::IsStillDue(ImageName image, bool is_requested) {
  std::vector<store::StoredBuild> builds = co_await context_.store.images.ListBuilds(image);
  co_await RefreshLocal(context_);
  std::optional<sched::ImageSpec> spec = SpecOf(*context_.config, image);
  if (!spec) co_return false;
  sched::ImageView view = ViewOf(context_, image, builds);
  view.is_build_locked = false;  // by us
  view.is_requested = is_requested;
  sched::BuildDecision decision = DecideBuild(view, *spec, context_.loop.Now());
  if (decision.reason == sched::BuildReason::kRequested)
    logger_.Info("Manual build request for image {}", image);
  if (decision.reason) logger_.Info("Building image {}: {}", image, ToString(*decision.reason));
  co_return decision.reason.has_value();
}

Task<bool> BuildWorker::BuildLocked(ImageName image, zk::HeldLock lock) {
  // Read before the build begins: one that is made later is not served by it, and stays.
  std::optional<store::Revision> request = co_await context_.store.images.ReadBuildRequest(image);
  bool is_due = co_await IsStillDue(image, request.has_value());
  if (!is_due) co_return false;
  auto perform = [this](Job& job) { return Perform(job); };
  auto end = [this](Job& job) { return End(job); };
  co_await Bracket(Begin(image, lock, request), perform, end);
  co_return true;
}

// If the builder dies between this and the last write, the record stays `building` without a lock; any
// builder's CleanupWorker removes it, and then this builder's removes the files.
Task<BuildWorker::Job> BuildWorker::Begin(ImageName image, zk::HeldLock lock,
                                          std::optional<store::Revision> request) {
  Job job;
  job.lock = lock;
  job.config = context_.config;
  job.image = job.config->common.diskimages.at(image);
  job.request = request;
  job.circumstances = Circumstances(image);
  Task<store::StoredBuild> create = context_.store.images.CreateBuild(image, NewRecord(job.image), lock);
  job.build = co_await std::move(create);
  co_return job;
}

Task<> BuildWorker::Perform(Job& job) {
  Outcome<Result> made = co_await Attempt(Make(job.build.id, job.config->common, job.image));
  if (made) {
    job.result = *made;
  } else {
    job.result.fault = made.error().message();
  }
  const ImageName& image = job.image.name;
  if (job.result.is_ready) {
    retries_.Succeeded(image);
    co_return;
  }
  Duration pause = retries_.Failed(image, job.circumstances, context_.loop.SteadyNow());
  std::string log = job.config->common.build_log_dir + "/" + job.build.id.log_name();
  logger_.Error("Build {} failed: {}. Log: {}. Next attempt in {} s", job.build.id, job.result.fault, log,
                std::chrono::duration_cast<std::chrono::seconds>(pause).count());
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

Task<BuildWorker::Result> BuildWorker::Make(store::BuildKey build, const config::Config& config,
                                            const config::DiskImage& image) {
  SteadyTime start = context_.loop.SteadyNow();
  Task<std::string> start_log =
      context_.files.StartLog(config.build_log_dir, build, config.build_log_retention);
  std::string log = co_await std::move(start_log);
  Task<Result> run = RunCommands(build, config, image, std::move(log));
  Result result = co_await std::move(run);
  result.took = context_.loop.SteadyNow() - start;
  if (result.code == 0 && result.fault.empty()) {
    co_await CheckImages(build, image.formats, result);
    result.is_ready = result.fault.empty();
  }
  co_return result;
}

Task<BuildWorker::Result> BuildWorker::RunCommands(store::BuildKey build, const config::Config& config,
                                                   const config::DiskImage& image, std::string log) {
  BuildContext context{context_.environment, context_.identity.helpers};
  BuildPlan plan = PlanBuild(config, image, build, context);
  SteadyTime end = context_.loop.SteadyNow() + image.build_timeout;
  Result result;
  result.code = 0;
  for (process::Command& command : plan.commands) {
    command.log_path = log;
    // build-timeout is for all of them together.
    command.timeout = end - context_.loop.SteadyNow();
    command.grace = context_.intervals.stop_grace;
    command.has_own_mounts = true;
    std::string program = command.argv.front();
    logger_.Info("Running {} for build {}", program, build);
    logger_.Info("Logging to {}", log);
    Task<process::Exit> run = context_.runner.Run(std::move(command));
    process::Exit exit = co_await std::move(run);
    result.code = exit.is_timed_out ? 1 : exit.code;
    if (exit.is_timed_out) {
      result.fault = fmt::format("{} took longer than build-timeout", NameOf(program));
      co_return result;
    }
    if (exit.code != 0) {
      result.fault = fmt::format("{} ended with {}", NameOf(program), exit.code);
      Task<std::string> read = context_.files.ReadLogEnd(log, kLogEnd);
      std::string end_of_log = co_await std::move(read);
      std::string reason = ReasonInLog(end_of_log);
      if (!reason.empty()) result.fault += ": " + reason;
      break;
    }
  }
  std::string line = fmt::format("Exit code: {}\n", result.code);
  co_await context_.files.AppendToLog(log, std::move(line));
  if (result.code != 0) co_return result;
  for (const std::string& format : plan.without_checksums) {
    std::string path = fmt::format("{}.{}", LocalBase(*config.images_dir, build), format);
    co_await context_.files.WriteChecksums(std::move(path));
  }
  co_return result;
}

// A build without all of its images is not ready, whatever its command says. Once it is recorded as ready,
// its files may vanish: nothing reads them for this job after that.
Task<> BuildWorker::CheckImages(store::BuildKey build, std::vector<std::string> formats, Result& result) {
  co_await RefreshLocal(context_);
  const std::map<std::string, std::string> images = context_.local[build];
  for (const std::string& format : formats) {
    auto image = images.find(format);
    if (image == images.end()) {
      result.fault = fmt::format("it made no {} file", format);
      co_return;
    }
    ImageCheck check = co_await context_.files.CheckImage(image->second, format);
    if (!check.fault.empty()) {
      result.fault = check.fault;
      co_return;
    }
    if (!check.doubt.empty()) logger_.Warning("Build {}: {}; clouds may refuse it", build, check.doubt);
    result.sizes[format] = co_await context_.files.AllocatedSize(image->second);
  }
}

Task<> BuildWorker::End(Job& job) {
  bool is_recorded = co_await RecordOrRemove(job);
  if (!job.result.is_ready) co_await RemoveTemporary(context_);
  if (!is_recorded) co_return;
  Report(job);  // before the write below, which may fail
  if (job.result.is_ready && job.request) {
    co_await context_.store.images.RemoveBuildRequest(job.build.id.image, *job.request);
  }
}

Task<> BuildWorker::Record(Job& job) {
  auto change = [&](ImageBuild& record) {
    record.state = job.result.is_ready ? ImageState::kReady : ImageState::kFailed;
    record.state_time = EndOfBuild(ViewOf(context_, job.build.id.image), context_.loop.Now());
    record.username = job.image.username;
    record.python_path = job.image.python_path;
    record.shell_type = job.image.shell_type;
    if (!job.result.is_ready) {
      record.formats.clear();
      record.error =
          Excerpt(job.result.fault.empty() ? "the builder was stopped" : job.result.fault, kMostError);
    }
    return store::Change::kWrite;
  };
  co_await context_.store.images.Update(job.build, job.lock, change);
}

Task<bool> BuildWorker::RecordOrRemove(Job& job) {
  Outcome<> recorded = co_await Attempt(Record(job));
  const store::BuildKey& build = job.build.id;
  if (!recorded) {
    logger_.Error("Build {} is thrown away, its end cannot be recorded: {}", build,
                  recorded.error().message());
    co_await context_.files.RemoveBuild(context_.images_dir(), build);
    co_return false;
  }
  if (job.result.is_ready) logger_.Info("DIB image {} is built: build {}", build.image, build);
  co_return true;
}

void BuildWorker::Report(const Job& job) {
  const std::string& image = job.build.id.image.value;
  for (const auto& [format, size] : job.result.sizes)
    context_.metrics.Set(stats::kBuildSize, {image, format}, static_cast<double>(size));
  context_.metrics.Observe(stats::kBuildDuration, {image}, job.result.took);
  context_.metrics.Set(stats::kBuildCode, {image}, job.result.code);
  context_.metrics.Set(stats::kLastBuild, {image}, ToSeconds(context_.loop.Now()));
}

}  // namespace nodepool::builder
