#include <fmt/format.h>

#include <algorithm>

#include "async/backoff.h"
#include "async/blocking_pool.h"
#include "async/deadline.h"
#include "base/text.h"
#include "driver/cloud/images/marked_upload.h"
#include "driver/cloud/own_types.h"
#include "drivers/aws/api/faults.h"
#include "drivers/aws/images/images.h"
#include "drivers/aws/images/own_images.h"
#include "drivers/aws/images/send_file.h"

namespace nodepool::drivers::aws {

namespace {

constexpr Duration kImportLimit = std::chrono::hours(6);
constexpr Duration kTooManyPause = std::chrono::seconds(30);
constexpr Backoff::Settings kTaskPauses{std::chrono::seconds(1), std::chrono::seconds(30), 1.5, 0.1};
constexpr int kMaxMissing = 3;  // lists without the task

// An upload under way.
struct Work {
  const ImageContext& context;
  const driver::ImageUploadParameters& upload;
  const AwsDiskImage& image;
  UploadMarks marks;
  std::shared_ptr<const SparseFile> file = nullptr;
};

// Reports how much of the file is done.
std::function<void(std::uint64_t)> Reporter(const Work& work, std::string step) {
  return [&work, step = std::move(step)](std::uint64_t bytes) {
    work.upload.report({step, static_cast<int>(bytes * 100 / work.file->size())});
  };
}

// A name that AWS refuses would be refused after hours.
void CheckName(const std::string& name) {
  bool is_good = name.size() >= 3 && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
                   bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                   return is_plain || std::string_view("() ./-'@_[]").find(c) != std::string_view::npos;
                 });
  if (is_good) return;
  throw Error(Verdict::kInvalid,
              fmt::format("AWS permits no image of the name {}: 3 to 128 letters, digits and "
                          "characters of () ./-'@_[]",
                          Excerpt(name, 150)));
}

S3& BucketOf(Services& services) {
  if (services.s3() != nullptr) return *services.s3();
  throw Error(Verdict::kInvalid,
              "the import methods snapshot and image need object-storage with bucket-name in the provider");
}

// While the account has too many tasks it waits, if the configuration says how long (driver-aws.md 15.2).
Task<std::string> BeginWhenPossible(const Work& work, ImportKind kind, const ImportOrder& order) {
  const ImageContext& context = work.context;
  SteadyTime until = context.loop().SteadyNow() + context.config.import_timeout.value_or(Duration(0));
  while (true) {
    Outcome<std::string> id = co_await Attempt(BeginImport(context.services.ec2(), kind, order));
    if (id) co_return *id;
    bool is_too_many = CodeOf(id.error()) == "ResourceCountLimitExceeded";
    if (!is_too_many || context.loop().SteadyNow() >= until) id.error().Rethrow();
    context.logger.Info("The account has as many import tasks as it may; image {} waits", work.upload.name);
    co_await context.loop().SleepFor(kTooManyPause);
  }
}

Task<ImportTask> AwaitTask(const Work& work, ImportKind kind, std::string id) {
  const ImageContext& context = work.context;
  Backoff pauses(kTaskPauses, context.environment.random);
  int missing = 0;
  while (true) {
    Duration pause = pauses.Next();
    co_await context.loop().SleepFor(pause);
    std::vector<ImportTask> tasks = co_await ListImportTasks(context.services.ec2(), kind, id);
    if (tasks.empty() && ++missing == kMaxMissing) {
      throw Error(Verdict::kFail, fmt::format("import task {} is not listed any more", id));
    }
    if (tasks.empty()) continue;
    const ImportTask& task = tasks.front();
    if (task.is_completed()) co_return task;
    if (task.has_ended()) {
      throw Error(Verdict::kFail, fmt::format("import task {} of {} failed: {}", id, work.marks.key,
                                              Excerpt(task.message, 300)));
    }
    work.upload.report({fmt::format("import task {}, {}", id, Excerpt(task.message)), task.percent});
  }
}

// Sends the file and has AWS import it; the object is removed afterwards.
Task<ImportTask> Import(const Work& work, ImportKind kind) {
  const ImageContext& context = work.context;
  S3& s3 = BucketOf(context.services);
  std::map<std::string, std::string> tags = TagsOf(work.upload);
  Task<> put = PutFile(context.loop(), context.environment.blocking_pool, context.logger, s3, work.file,
                       work.marks.key, ObjectTags(tags), Reporter(work, "sending the file"));
  co_await std::move(put);
  ImportOrder order{s3.bucket(),        work.marks.key,
                    work.upload.format, work.image.architecture,
                    std::move(tags),    work.marks.Token("import")};
  std::string id = co_await BeginWhenPossible(work, kind, order);
  context.logger.Info("Image {} is imported by task {}", work.upload.name, id);
  SteadyTime deadline = context.loop().SteadyNow() + context.config.import_timeout.value_or(kImportLimit);
  Task<ImportTask> wait = AwaitTask(work, kind, id);
  ImportTask task = co_await WithDeadline(context.loop(), deadline, "import task " + id, std::move(wait));
  Outcome<> removed = co_await Attempt(RemoveObject(s3, work.marks.key));
  if (!removed) {
    context.logger.Warning("Object {} of bucket {} is left: {}", work.marks.key, s3.bucket(),
                           removed.error().message());
  }
  co_return task;
}

// Without them nothing shows whose it is; the sweep for leaks repeats it.
Task<> AddTagsQuietly(const Work& work, std::string id) {
  if (id.empty()) co_return;
  Outcome<> added = co_await Attempt(AddTags(work.context.services.ec2(), id, TagsOf(work.upload)));
  if (!added) work.context.logger.Warning("{} has no tags yet: {}", id, added.error().message());
}

Task<std::string> ImportAsSnapshot(const Work& work) {
  Task<ImportTask> import = Import(work, ImportKind::kSnapshot);
  ImportTask task = co_await std::move(import);
  co_await AddTagsQuietly(work, task.snapshot);
  std::vector<std::string> ids{task.snapshot};
  std::vector<Snapshot> found =
      co_await ListSnapshots(work.context.services.ec2(), "snapshot-id", std::move(ids));
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  Snapshot snapshot{
      task.snapshot, "completed", static_cast<int>((work.file->size() + kGibibyte - 1) / kGibibyte), {}};
  if (!found.empty()) snapshot = found.front();
  std::string id = co_await RegisterImage(work.context.loop(), work.context.services.ec2(), work.upload,
                                          work.marks, snapshot);
  co_return id;
}

Task<std::string> ImportAsImage(const Work& work) {
  Task<ImportTask> import = Import(work, ImportKind::kImage);
  ImportTask task = co_await std::move(import);
  if (task.image.empty()) throw Error(Verdict::kFail, "import task " + task.id + " made no image");
  co_await AddTagsQuietly(work, task.image);
  co_await AddTagsQuietly(work, task.snapshot);
  co_return task.image;
}

Task<std::string> WriteDirectly(const Work& work) {
  const ImageContext& context = work.context;
  SteadyTime deadline = context.loop().SteadyNow() + context.config.import_timeout.value_or(kImportLimit);
  Task<Snapshot> write =
      WriteSnapshot(context.loop(), context.environment.blocking_pool, context.logger, context.services.ebs(),
                    context.services.ec2(), work.file, TagsOf(work.upload), work.marks.Token("snapshot"),
                    Reporter(work, "writing the snapshot"));
  Snapshot snapshot =
      co_await WithDeadline(context.loop(), deadline, "writing the snapshot", std::move(write));
  std::string id =
      co_await RegisterImage(context.loop(), context.services.ec2(), work.upload, work.marks, snapshot);
  co_return id;
}

Task<std::string> MakeImage(Work& work) {
  work.file =
      co_await driver::cloud::OpenImageFile(work.context.environment.blocking_pool, work.upload.filename);
  std::string id;
  switch (work.image.import_method) {
    case ImportMethod::kSnapshot:
      id = co_await ImportAsSnapshot(work);
      break;
    case ImportMethod::kImage:
      id = co_await ImportAsImage(work);
      break;
    case ImportMethod::kEbsDirect:
      id = co_await WriteDirectly(work);
      break;
  }
  co_await AwaitAvailable(work.context.loop(), work.context.services.ec2(), id);
  work.context.logger.Info("Upload of {} complete as {}", work.upload.name, id);
  co_return id;
}

}  // namespace

Task<std::string> UploadImage(ImageContext& context, driver::ImageUploadParameters upload) {
  CheckName(upload.name);
  Work work{context, upload, driver::cloud::As<AwsDiskImage>(*upload.image), MarksOf(upload, upload.format)};
  if (work.image.import_method != ImportMethod::kEbsDirect) BucketOf(context.services);
  auto make = [&work] { return MakeImage(work); };
  auto remove = [&work] { return RemoveUnfinished(work.context.services, work.context.logger, work.marks); };
  Task<std::string> making =
      driver::cloud::UploadMarked(context.loop(), context.logger, upload, work.marks, make, remove);
  std::string id = co_await std::move(making);
  co_return id;
}

}  // namespace nodepool::drivers::aws
