#include "drivers/aws/images/put_file.h"

#include <algorithm>

#include "async/blocking_pool.h"
#include "drivers/aws/images/workers.h"

namespace nodepool::drivers::aws {

namespace {

constexpr std::uint64_t kPartSize = 8 << 20;
constexpr std::uint64_t kMaxParts = 10'000;
constexpr std::uint64_t kInMemory = 32 << 20;

Task<Content> ReadContent(BlockingPool& pool, std::shared_ptr<const ImageFile> file, std::uint64_t place,
                          std::size_t length) {
  auto read = [file = std::move(file), place, length] { return MakeContent(file->Read(place, length)); };
  return OnBlockingPool(pool, std::move(read));
}

// An upload in parts under way.
struct Parts {
  BlockingPool& pool;
  S3& s3;
  std::shared_ptr<const ImageFile> file;
  std::string key;
  std::string upload_id;
  PartPlan plan;
  std::function<void(std::uint64_t)> sent;
  int next = 0;
  std::uint64_t bytes_sent = 0;
  std::vector<S3Part> done;
};

Task<> PutParts(Parts& parts) {
  while (parts.next < parts.plan.count) {
    int index = parts.next++;
    std::uint64_t place = static_cast<std::uint64_t>(index) * parts.plan.size;
    Content content = co_await ReadContent(parts.pool, parts.file, place, parts.plan.size);
    std::uint64_t length = content.bytes.size();
    Task<S3Part> put = parts.s3.PutPart(parts.key, parts.upload_id, index + 1, std::move(content));
    S3Part part = co_await std::move(put);
    parts.done.at(static_cast<std::size_t>(index)) = std::move(part);
    parts.bytes_sent += length;
    parts.sent(parts.bytes_sent);
  }
}

}  // namespace

PartPlan PlanParts(std::uint64_t file_size) {
  PartPlan plan;
  std::uint64_t least = (file_size + kMaxParts - 1) / kMaxParts;
  std::uint64_t mebibytes = (least + (1 << 20) - 1) >> 20;
  plan.size = std::max(kPartSize, mebibytes << 20);
  plan.count = static_cast<int>(std::max<std::uint64_t>(1, (file_size + plan.size - 1) / plan.size));
  plan.at_a_time = static_cast<int>(std::clamp<std::uint64_t>(kInMemory / plan.size, 1, 4));
  return plan;
}

Task<> PutFile(Loop& loop, BlockingPool& pool, log::Logger logger, S3& s3,
               std::shared_ptr<const ImageFile> file, std::string key,
               std::map<std::string, std::string> tags, std::function<void(std::uint64_t)> sent) {
  Parts parts{pool, s3, file, key, "", PlanParts(file->size()), std::move(sent)};
  if (parts.plan.count == 1) {
    Content content = co_await ReadContent(pool, file, 0, file->size());
    co_await s3.PutObject(key, std::move(tags), std::move(content));
    parts.sent(file->size());
    co_return;
  }
  parts.upload_id = co_await s3.BeginUpload(key, std::move(tags));
  parts.done.resize(static_cast<std::size_t>(parts.plan.count));
  std::function<Task<>()> make = [&parts] { return PutParts(parts); };
  std::string name = "send parts of " + key;
  co_await RunWorkers(loop, std::move(logger), std::move(name), parts.plan.at_a_time, std::move(make));
  co_await s3.CompleteUpload(key, parts.upload_id, std::move(parts.done));
}

Task<> RemoveObject(S3& s3, std::string key) {
  std::vector<S3Upload> uploads = co_await s3.ListUploads(key);
  for (const S3Upload& upload : uploads) {
    if (upload.key == key) co_await s3.AbortUpload(key, upload.id);
  }
  co_await s3.DeleteObject(key);
}

}  // namespace nodepool::drivers::aws
