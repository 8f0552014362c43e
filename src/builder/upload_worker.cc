#include "builder/upload_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/task.h"
#include "async/task_group.h"
#include "base/scope_exit.h"
#include "base/text.h"
#include "builder/context.h"
#include "builder/metrics.h"
#include "builder/validation.h"
#include "sched/images/image_life.h"

namespace nodepool::builder {

namespace {

constexpr Duration kPause = std::chrono::seconds(10);
constexpr std::size_t kMaxStep = 100;

}  // namespace

std::string ToText(const driver::UploadProgress& progress) {
  return fmt::format("{}, {} %", Excerpt(progress.step, kMaxStep), progress.percent);
}

void UploadProgressNotes::Report(const driver::UploadProgress& progress) {
  std::string text = ToText(progress);
  if (text == text_) return;
  text_ = std::move(text);
  has_changed_.Set();
}

Task<> UploadProgressNotes::Run() {
  while (true) {
    co_await has_changed_.Wait();
    has_changed_.Reset();
    Outcome<> written = co_await Attempt(write_(text_));
    if (!written) logger_.Debug("The progress could not be written: {}", written.error().message());
    co_await loop_.SleepFor(kPause);
  }
}

std::string ImageNameInCloud(const std::string& format, const ImageName& image, const UploadId& upload,
                             WallTime now) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  std::map<std::string, std::string> words = {
      {"image_name", image.value}, {"upload_id", upload.value}, {"timestamp", fmt::format("{}", seconds)}};
  std::string name;
  for (std::size_t i = 0; i < format.size(); ++i) {
    bool is_doubled = i + 1 < format.size() && format[i + 1] == format[i];
    if ((format[i] == '{' || format[i] == '}') && is_doubled) {
      name += format[i++];
    } else if (format[i] == '{') {
      std::size_t end = format.find('}', i);
      auto word = words.find(format.substr(i + 1, end == std::string::npos ? end : end - i - 1));
      if (end == std::string::npos || word == words.end()) {
        throw Error(
            Verdict::kInvalid,
            fmt::format("image-name-format {}: expected {{image_name}}, {{upload_id}} or {{timestamp}}",
                        Excerpt(format)));
      }
      name += word->second;
      i = end;
    } else {
      name += format[i];
    }
  }
  return name;
}

namespace {

constexpr std::size_t kMostUploadError = 400;

// Logs each step of an upload and each tenth of it.
std::function<void(const driver::UploadProgress&)> LogProgress(log::Logger logger, std::string what) {
  return [logger = std::move(logger), what = std::move(what), step = std::string(),
          tenth = 0](const driver::UploadProgress& progress) mutable {
    bool is_news = progress.step != step || progress.percent / 10 != tenth;
    if (!is_news) return;
    step = progress.step;
    tenth = progress.percent / 10;
    logger.Info("{}: {}, {} %", what, step, progress.percent);
  };
}

}  // namespace

UploadWorker::UploadWorker(Context& context, ImageProviders& providers)
    : Worker(context, "nodepool.builder.UploadWorker.0"),
      providers_(providers),
      retries_(context.intervals.first_retry, context.intervals.last_retry) {}

std::string UploadWorker::Circumstances(const store::BuildKey& build, const ProviderName& provider) const {
  auto config = context_.config->providers.find(provider);
  bool is_there = config != context_.config->providers.end();
  return fmt::format("{} {} {}", build.build, context_.caches.images.UploadRetries(build, provider),
                     is_there ? config->second->fingerprint : "");
}

SteadyTime UploadWorker::Consider() {
  SteadyTime now = context_.loop.SteadyNow();
  SteadyTime next = SteadyTime::max();
  for (const auto& [image, settings] : context_.config->common.diskimages) {
    for (const sched::UploadDecision& decision :
         DecideUploads(ViewOf(context_, image), *SpecOf(*context_.config, image))) {
      Target target(image, decision.provider);
      if (!decision.build || uploading_.contains(target)) continue;
      std::string circumstances = Circumstances({image, *decision.build}, decision.provider);
      if (auto retry_at = retries_.WaitsUntil(target, circumstances, now)) {
        next = std::min(next, *retry_at);
        continue;
      }
      if (std::ssize(uploading_) - validating_ >= context_.most_uploads()) continue;
      uploading_.insert(target);
      jobs_.Spawn(fmt::format("upload image {} to {}", image, decision.provider),
                  Upload(target, *decision.build));
    }
  }
  return next;
}

Task<> UploadWorker::Upload(Target target, BuildId build) {
  store::BuildKey key{target.first, build};
  std::string circumstances = Circumstances(key, target.second);
  auto reading = reading_.insert(key);
  ScopeExit ended([&] {
    reading_.erase(reading);
    uploading_.erase(target);
    Wake();
  });
  Outcome<bool> is_done = co_await Attempt(UploadOnce(key, target.second));
  SteadyTime now = context_.loop.SteadyNow();
  if (is_done && *is_done) {
    retries_.Succeeded(target);
  } else if (is_done) {
    retries_.NotYet(target, circumstances, now);
  } else {
    Duration pause = retries_.Failed(target, circumstances, now);
    logger_.Error("Uploading build {} to provider {} failed: {}. Next attempt in {} s", key, target.second,
                  is_done.error().message(), std::chrono::duration_cast<std::chrono::seconds>(pause).count());
  }
}

Task<bool> UploadWorker::UploadOnce(store::BuildKey build, ProviderName provider) {
  std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLockUploads(build, provider);
  if (!lock) co_return false;
  Task<bool> work = UploadLocked(build, provider, *lock);
  bool is_done = co_await context_.store.tree.Holding(*lock, std::move(work));
  co_return is_done;
}

// The cache may be out of date: the records are read again under the lock.
Task<bool> UploadWorker::UploadLocked(store::BuildKey build, ProviderName provider, zk::HeldLock lock) {
  bool is_there = co_await HasReadyUpload(build, provider);
  if (is_there) co_return false;
  std::optional<store::StoredBuild> stored = co_await context_.store.images.ReadBuild(build);
  if (!stored || stored->record.state != ImageState::kReady) co_return false;
  co_await RefreshLocal(context_);
  Job job;
  job.build = *stored;
  job.provider = providers_.Find(provider);
  job.lock = lock;
  auto image = context_.config->common.diskimages.find(build.image);
  if (!job.provider || image == context_.config->common.diskimages.end()) co_return false;
  auto local = context_.local.find(build);
  if (local == context_.local.end()) co_return false;
  auto file = local->second.find(job.provider->config().image_format);
  if (file == local->second.end() || !job.provider->config().diskimages.contains(build.image))
    co_return false;
  job.filename = file->second;
  job.image_metadata = image->second.metadata;
  job.validation = image->second.validation;
  Task<bool> perform = Perform(std::move(job));
  bool is_done = co_await std::move(perform);
  co_return is_done;
}

Task<bool> UploadWorker::HasReadyUpload(store::BuildKey build, ProviderName provider) {
  std::vector<store::StoredUpload> uploads = co_await context_.store.images.ListUploads(build, provider);
  co_return std::ranges::any_of(
      uploads, [](const store::StoredUpload& upload) { return upload.record.state == ImageState::kReady; });
}

Task<bool> UploadWorker::Perform(Job job) {
  const ProviderName& provider = job.provider->config().name;
  SteadyTime start = context_.loop.SteadyNow();
  auto send = [&](store::StoredUpload& upload) { return TrySend(job, upload); };
  auto finish = [&](store::StoredUpload& upload) { return Finish(job, upload); };
  co_await Bracket(Begin(job), send, finish);
  logger_.Info("Image build {} (external_id {}) in {} is ready", job.build.id, job.external_id, provider);
  metrics::LabelValues labels = {job.build.id.image.value, provider.value};
  context_.metrics.Observe(stats::kUploadTime, labels, context_.loop.SteadyNow() - start);
  context_.metrics.Add(stats::kUpload, labels);
  co_return true;
}

// If the builder dies after this, the record stays `uploading` without a lock: any builder that knows the
// provider removes it and the image whose id it has. An image whose id could not be recorded is found by the
// launcher's leak clean-up.
Task<store::StoredUpload> UploadWorker::Begin(const Job& job) {
  ImageUpload record;
  record.state = ImageState::kUploading;
  record.state_time = context_.loop.Now();
  record.username = job.build.record.username;
  record.python_path = job.build.record.python_path;
  record.shell_type = job.build.record.shell_type;
  return context_.store.images.CreateUpload(job.build.id, job.provider->config().name, std::move(record),
                                            job.lock);
}

Task<> UploadWorker::TrySend(Job& job, store::StoredUpload& upload) {
  Outcome<> sent = co_await Attempt(Send(job, upload));
  if (sent) co_return;
  job.error = Excerpt(sent.error().message(), kMostUploadError);
  sent.error().Rethrow();
}

// Uploads the image, then runs the hook.
Task<> UploadWorker::Send(Job& job, store::StoredUpload& upload) {
  const driver::ProviderConfig& config = job.provider->config();
  job.name = ImageNameInCloud(config.image_name_format, job.build.id.image, upload.id.upload,
                              upload.record.state_time);
  logger_.Info("Uploading build {} to provider {} as {} from {}", job.build.id, config.name, job.name,
               job.filename);
  driver::ImageUploadParameters parameters;
  parameters.image = config.diskimages.at(job.build.id.image);
  parameters.name = job.name;
  parameters.filename = job.filename;
  parameters.format = config.image_format;
  for (const auto& [key, value] : job.image_metadata) parameters.metadata[key] = value;
  for (const auto& [key, value] : parameters.image->meta) parameters.metadata[key] = value;
  parameters.metadata["nodepool_build_id"] = job.build.id.build.value;
  parameters.metadata["nodepool_upload_id"] = upload.id.upload.value;
  // What carries it was made by this upload, and by none of another tree with the same numbers.
  parameters.metadata["nodepool_attempt"] = context_.random.UuidHex();
  Task<Checksums> read = context_.files.ReadChecksums(job.filename);
  Checksums checksums = co_await std::move(read);
  parameters.md5 = checksums.md5;
  parameters.sha256 = checksums.sha256;
  parameters.timeout = config.image_upload_timeout;
  parameters.announce = [&](std::string id) { return NoteImage(job, upload, std::move(id)); };
  Task<std::string> send = SendFile(job, upload, std::move(parameters));
  std::string external_id = co_await std::move(send);
  auto remove = [&](const Failure&) { return DeleteQuietly(job.provider, external_id); };
  co_await OnFailure(Test(job, upload, external_id), remove);
  job.external_id = external_id;
}

Task<> UploadWorker::Test(const Job& job, store::StoredUpload& upload, std::string external_id) {
  if (job.provider->config().post_upload_hook) co_await RunHook(job, upload, external_id);
  if (job.validation) co_await Validate(job, upload, external_id);
}

// Uploads that are validated do not count: waiting for a machine may take long.
Task<> UploadWorker::Validate(const Job& job, store::StoredUpload& upload, std::string external_id) {
  const ImageName& image = job.build.id.image;
  std::optional<LabelName> label = ValidationLabelOf(job.provider->config(), image);
  if (!label) {
    logger_.Warning(
        "Upload {} is not validated: no pool of the provider that launches nodes has a label with the image",
        upload.id);
    co_return;
  }
  co_await NoteImage(job, upload, external_id);
  ++validating_;
  Wake();
  ScopeExit ended([this] { --validating_; });
  Validation validation{upload.id, external_id, *job.validation, *label};
  validation.note = [&](std::string text) { return NoteProgress(job, upload, std::move(text)); };
  co_await builder::Validate(context_, logger_, std::move(validation));
  logger_.Info("Upload {} is valid", upload.id);
}

Task<std::string> UploadWorker::SendFile(Job& job, store::StoredUpload& upload,
                                         driver::ImageUploadParameters parameters) {
  auto write = [&](std::string text) { return Uninterrupted(NoteProgress(job, upload, std::move(text))); };
  UploadProgressNotes notes(context_.loop, logger_, write);
  auto log = LogProgress(logger_, fmt::format("Upload of {} to {}", job.name, job.provider->config().name));
  parameters.report = [&notes, log = std::move(log)](const driver::UploadProgress& progress) mutable {
    log(progress);
    notes.Report(progress);
  };
  TaskGroup writing(context_.loop, logger_);
  writing.Spawn("progress of " + job.name, notes.Run());
  auto stop = [&writing] { return writing.Stop(); };
  Task<std::string> send = job.provider->UploadImage(std::move(parameters));
  std::string external_id = co_await WithCleanup(std::move(send), stop);
  co_return external_id;
}

Task<> UploadWorker::NoteProgress(const Job& job, store::StoredUpload& upload, std::string progress) {
  Gate::Pass pass = co_await job.record_gate->Enter();
  auto change = [&](ImageUpload& record) {
    if (record.state != ImageState::kUploading || record.progress == progress) return store::Change::kSkip;
    record.progress = progress;
    return store::Change::kWrite;
  };
  co_await context_.store.images.Update(upload, job.lock, change);
}

Task<> UploadWorker::NoteImage(const Job& job, store::StoredUpload& upload, std::string external_id) {
  auto change = [&](ImageUpload& record) {
    if (record.external_id == external_id) return store::Change::kSkip;
    record.external_id = external_id;
    record.external_name = job.name;
    record.format = job.provider->config().image_format;
    return store::Change::kWrite;
  };
  Gate::Pass pass = co_await job.record_gate->Enter();
  co_await context_.store.images.Update(upload, job.lock, change);
}

Task<> UploadWorker::RunHook(const Job& job, store::StoredUpload& upload, std::string external_id) {
  const driver::ProviderConfig& config = job.provider->config();
  // If the builder dies during the hook, the image is deleted with the record.
  co_await NoteImage(job, upload, external_id);
  process::Command command;
  command.argv = {*config.post_upload_hook, config.name.value, external_id, job.filename};
  command.environment = context_.environment;
  command.timeout = context_.intervals.hook_timeout;
  Task<process::Exit> run = context_.runner.Run(std::move(command));
  process::Exit exit = co_await std::move(run);
  logger_.Info("post-upload-hook of provider {} ended with {}: {}", config.name, exit.code, exit.output);
  if (!exit.is_good()) {
    throw Error(Verdict::kFail, fmt::format("post-upload-hook {} ended with {}{}", *config.post_upload_hook,
                                            exit.code, exit.is_timed_out ? ", out of time" : ""));
  }
}

// Without an external id the upload has failed.
Task<> UploadWorker::Finish(const Job& job, store::StoredUpload& upload) {
  Outcome<> recorded = co_await Attempt(Record(job, upload));
  if (recorded) co_return;
  logger_.Error("The end of upload {} cannot be recorded: {}", upload.id, recorded.error().message());
  if (job.external_id.empty()) co_return;
  co_await DeleteQuietly(job.provider, job.external_id);
  recorded.error().Rethrow();
}

Task<> UploadWorker::Record(const Job& job, store::StoredUpload& upload) {
  bool is_ready = !job.external_id.empty();
  auto change = [&](ImageUpload& record) {
    ImageUpload end;
    end.state = is_ready ? ImageState::kReady : ImageState::kFailed;
    end.state_time =
        EndOfUpload(ViewOf(context_, job.build.id.image), job.provider->config().name, context_.loop.Now());
    end.username = end.python_path = std::nullopt;
    if (is_ready) {
      end.external_id = job.external_id;
      end.external_name = job.name;
      end.format = job.provider->config().image_format;
      end.username = job.build.record.username;
      end.python_path = job.build.record.python_path;
      end.shell_type = job.build.record.shell_type;
    } else {
      end.error = job.error;
    }
    end.foreign = record.foreign;
    record = std::move(end);
    return store::Change::kWrite;
  };
  co_await context_.store.images.Update(upload, job.lock, change);
}

Task<> UploadWorker::DeleteQuietly(std::shared_ptr<driver::ImageStore> provider, std::string external_id) {
  Outcome<> deleted = co_await Attempt(provider->DeleteImage(external_id));
  if (!deleted) {
    logger_.Error("Image {} is left in provider {}: {}", external_id, provider->config().name,
                  deleted.error().message());
  }
}

}  // namespace nodepool::builder
