#include "builder/upload_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/shield.h"
#include "base/text.h"
#include "builder/stats_metrics.h"
#include "builder/view.h"
#include "sched/image_upload.h"

namespace nodepool::builder {

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

UploadWorker::UploadWorker(Context& context, ImageProviders& providers)
    : Worker(context, "nodepool.builder.UploadWorker.0"),
      providers_(providers),
      retries_(context.intervals.first_retry, context.intervals.last_retry) {}

std::string UploadWorker::Circumstances(const ProviderName& provider, const BuildId& build) const {
  auto config = context_.config->providers.find(provider);
  bool is_there = config != context_.config->providers.end();
  return fmt::format("{} {}", build, is_there ? config->second->fingerprint : "");
}

SteadyTime UploadWorker::Consider() {
  SteadyTime now = context_.loop.SteadyNow();
  SteadyTime next = SteadyTime::max();
  for (const auto& [image, settings] : context_.config->common.diskimages) {
    for (const sched::UploadDecision& decision :
         DecideUploads(ViewOf(context_, image), *WishOf(*context_.config, image))) {
      Target target(image, decision.provider);
      if (!decision.build || uploading_.contains(target)) continue;
      std::string circumstances = Circumstances(decision.provider, *decision.build);
      if (auto retry_at = retries_.WaitsUntil(target, circumstances, now)) {
        next = std::min(next, *retry_at);
        continue;
      }
      if (std::ssize(uploading_) >= context_.most_uploads()) continue;
      uploading_.insert(target);
      jobs_.Spawn(fmt::format("upload image {} to {}", image, decision.provider),
                  Upload(target, *decision.build));
    }
  }
  return next;
}

Task<> UploadWorker::Upload(Target target, BuildId build) {
  store::BuildKey key{target.first, build};
  std::string circumstances = Circumstances(target.second, build);
  std::exception_ptr error;
  auto reading = reading_.insert(key);
  try {
    bool is_done = co_await UploadOnce(key, target.second);
    if (is_done) {
      retries_.Succeeded(target);
    } else {
      retries_.NotYet(target, circumstances, context_.loop.SteadyNow());
    }
  } catch (...) {
    error = std::current_exception();
  }
  reading_.erase(reading);
  uploading_.erase(target);
  Wake();
  if (!error || VerdictOf(error) == Verdict::kCancelled) co_return;
  Duration pause = retries_.Failed(target, std::move(circumstances), context_.loop.SteadyNow());
  logger_.Error("Uploading build {} to provider {} failed: {}. Next attempt in {} s", key, target.second,
                MessageOf(error), std::chrono::duration_cast<std::chrono::seconds>(pause).count());
}

Task<bool> UploadWorker::UploadOnce(store::BuildKey build, ProviderName provider) {
  std::optional<zk::HeldLock> lock = co_await context_.store.images.TryLockUploads(build, provider);
  if (!lock) co_return false;
  Task<bool> work = UploadLocked(build, provider, *lock);
  bool is_done = co_await context_.store.tree.Holding(*lock, std::move(work));
  co_return is_done;
}

// What the cache told may be old: the records are read again under the lock.
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
  const driver::ProviderConfig& config = job.provider->config();
  WallTime start = context_.loop.Now();
  SteadyTime steady_start = context_.loop.SteadyNow();
  ImageUpload record;
  record.state = ImageState::kUploading;
  record.state_time = start;
  record.username = job.build.record.username;
  record.python_path = job.build.record.python_path;
  record.shell_type = job.build.record.shell_type;
  Task<store::StoredUpload> create =
      context_.store.images.CreateUpload(job.build.id, config.name, std::move(record), job.lock);
  store::StoredUpload upload = co_await std::move(create);
  // Died from here on, the record stays `uploading` without a lock: any builder that knows
  // the provider removes it, and the image whose id it holds. Of one whose id could not be
  // noted no record has the number: the launcher's leak clean-up finds it.
  std::string name, external_id;
  std::exception_ptr error;
  try {
    name = ImageNameInCloud(config.image_name_format, job.build.id.image, upload.id.upload, start);
    logger_.Info("Uploading build {} to provider {} as {} from {}", job.build.id, config.name, name,
                 job.filename);
    Task<std::string> send = Send(job, upload, name);
    external_id = co_await std::move(send);
  } catch (...) {
    error = std::current_exception();
  }
  co_await StayAwake();
  Task<> finish = Finish(job, upload, std::move(name), external_id);
  co_await Shielded(std::move(finish));
  if (error) std::rethrow_exception(error);
  logger_.Info("Image build {} (external_id {}) in {} is ready", job.build.id, external_id, config.name);
  metrics::LabelValues labels = {job.build.id.image.value, config.name.value};
  context_.metrics.Observe(stats::kUploadTime, labels, context_.loop.SteadyNow() - steady_start);
  context_.metrics.Add(stats::kUpload, labels);
  co_return true;
}

// The external id, with the hook behind it.
Task<std::string> UploadWorker::Send(Job job, store::StoredUpload& upload, std::string name) {
  const driver::ProviderConfig& config = job.provider->config();
  driver::ImageUploadParameters parameters;
  parameters.image = config.diskimages.at(job.build.id.image);
  parameters.name = name;
  parameters.filename = job.filename;
  parameters.format = config.image_format;
  for (const auto& [key, value] : job.image_metadata) parameters.metadata[key] = value;
  for (const auto& [key, value] : parameters.image->meta) parameters.metadata[key] = value;
  parameters.metadata["nodepool_build_id"] = job.build.id.build.value;
  parameters.metadata["nodepool_upload_id"] = upload.id.upload.value;
  Task<Checksums> read = context_.files.ReadChecksums(job.filename);
  Checksums checksums = co_await std::move(read);
  parameters.md5 = checksums.md5;
  parameters.sha256 = checksums.sha256;
  parameters.timeout = config.image_upload_timeout;
  parameters.announce = [&](std::string id) { return NoteImage(job, upload, name, std::move(id)); };
  Task<std::string> send = job.provider->UploadImage(std::move(parameters));
  std::string external_id = co_await std::move(send);
  if (config.post_upload_hook) {
    Task<> hook = RunHook(job, upload, name, external_id);
    co_await std::move(hook);
  }
  co_return external_id;
}

Task<> UploadWorker::NoteImage(Job job, store::StoredUpload& upload, std::string name,
                               std::string external_id) {
  auto change = [&](ImageUpload& record) {
    if (record.external_id == external_id) return store::Change::kSkip;
    record.external_id = external_id;
    record.external_name = name;
    record.format = job.provider->config().image_format;
    return store::Change::kWrite;
  };
  co_await context_.store.images.Update(upload, job.lock, change);
}

Task<> UploadWorker::RunHook(Job job, store::StoredUpload& upload, std::string name,
                             std::string external_id) {
  const driver::ProviderConfig& config = job.provider->config();
  std::exception_ptr error;
  try {
    // Died in the hook, the image is deleted with the record.
    Task<> note = NoteImage(job, upload, name, external_id);
    co_await std::move(note);
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
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return;
  co_await StayAwake();
  Task<> remove = DeleteQuietly(job.provider, external_id);
  co_await Shielded(std::move(remove));
  std::rethrow_exception(error);
}

// An upload without an external id has failed.
Task<> UploadWorker::Finish(Job job, store::StoredUpload upload, std::string name, std::string external_id) {
  bool is_ready = !external_id.empty();
  std::exception_ptr error;
  try {
    auto change = [&](ImageUpload& record) {
      ImageUpload end;
      end.state = is_ready ? ImageState::kReady : ImageState::kFailed;
      end.state_time = context_.loop.Now();
      end.username = end.python_path = std::nullopt;
      if (is_ready) {
        end.external_id = external_id;
        end.external_name = name;
        end.format = job.provider->config().image_format;
        end.username = job.build.record.username;
        end.python_path = job.build.record.python_path;
        end.shell_type = job.build.record.shell_type;
      }
      end.foreign = record.foreign;
      record = std::move(end);
      return store::Change::kWrite;
    };
    co_await context_.store.images.Update(upload, job.lock, change);
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return;
  logger_.Error("The end of upload {} cannot be recorded: {}", upload.id, MessageOf(error));
  if (!is_ready) co_return;
  Task<> remove = DeleteQuietly(job.provider, external_id);
  co_await std::move(remove);
  std::rethrow_exception(error);
}

Task<> UploadWorker::DeleteQuietly(std::shared_ptr<driver::Provider> provider, std::string external_id) {
  std::exception_ptr error;
  try {
    co_await provider->DeleteImage(external_id);
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    logger_.Error("Image {} is left in provider {}: {}", external_id, provider->config().name,
                  MessageOf(error));
  }
}

}  // namespace nodepool::builder
