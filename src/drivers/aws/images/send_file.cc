#include "drivers/aws/images/send_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "async/attempt.h"
#include "async/blocking_pool.h"
#include "async/cleanup.h"
#include "base/digest.h"
#include "base/text.h"
#include "drivers/aws/api/faults.h"

namespace nodepool::drivers::aws {

namespace {

Task<> RunWorker(TaskGroup& workers, Task<> work, Outcome<>& first) {
  Outcome<> done = co_await Attempt(std::move(work));
  if (done || !first) co_return;
  first = std::move(done);
  workers.CancelAll();
}

}  // namespace

Task<> RunWorkers(Loop& loop, log::Logger logger, std::string name, int count, std::function<Task<>()> make) {
  Outcome<> first;
  TaskGroup workers(loop, std::move(logger));
  for (int i = 0; i < count; ++i) workers.Spawn(name, RunWorker(workers, make(), first));
  auto stop = [&workers] { return workers.Stop(); };
  co_await WithCleanup(workers.Join(), stop);
  if (!first) first.error().Rethrow();
}

namespace {

constexpr std::uint64_t kPartSize = 8 << 20;
constexpr std::uint64_t kMaxParts = 10'000;
constexpr std::uint64_t kInMemory = 32 << 20;

Task<Content> ReadContent(BlockingPool& pool, std::shared_ptr<const SparseFile> file, std::uint64_t place,
                          std::size_t length) {
  auto read = [file = std::move(file), place, length] { return MakeContent(file->Read(place, length)); };
  return OnBlockingPool(pool, std::move(read));
}

// An upload in parts under way.
struct Parts {
  BlockingPool& pool;
  S3& s3;
  std::shared_ptr<const SparseFile> file;
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
               std::shared_ptr<const SparseFile> file, std::string key,
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

namespace {

constexpr int kBlocksAtATime = 8;
// What one task takes at a time; so many bytes of zeros are read in one go at most.
constexpr int kBlocksOfAStretch = 64;
constexpr Duration kPollPause = std::chrono::seconds(3);
constexpr int kMaxUnseen = 20;  // lists without the snapshot

// A snapshot under way.
struct Writing {
  BlockingPool& pool;
  Ebs& ebs;
  std::shared_ptr<const SparseFile> file;
  NewSnapshot snapshot;
  std::function<void(std::uint64_t)> passed;
  std::uint64_t next = 0;
  std::uint64_t bytes_passed = 0;
  std::map<int, std::string> digests = {};  // of the written blocks, in hex
};

Task<> WriteStretch(Writing& writing, std::uint64_t place, std::uint64_t end) {
  while (place < end) {
    auto find = [file = writing.file, place, end, size = writing.snapshot.block_size] {
      return FindBlock(*file, place, end, size);
    };
    std::optional<Block> block = co_await OnBlockingPool(writing.pool, std::move(find));
    if (!block) co_return;
    std::string digest = block->content.sha256;
    Task<> put = writing.ebs.PutBlock(writing.snapshot.id, block->index, std::move(block->content));
    co_await std::move(put);
    writing.digests[block->index] = std::move(digest);
    place = (static_cast<std::uint64_t>(block->index) + 1) *
            static_cast<std::uint64_t>(writing.snapshot.block_size);
  }
}

Task<> WriteStretches(Writing& writing) {
  std::uint64_t size = writing.file->size();
  while (writing.next < size) {
    std::uint64_t place = writing.next;
    std::uint64_t stretch = static_cast<std::uint64_t>(writing.snapshot.block_size) * kBlocksOfAStretch;
    writing.next = std::min(place + stretch, size);
    std::uint64_t length = writing.next - place;
    co_await WriteStretch(writing, place, writing.next);
    writing.bytes_passed += length;
    writing.passed(writing.bytes_passed);
  }
}

std::string DigestOfAll(const std::map<int, std::string>& digests) {
  if (digests.empty()) return "";
  Digest all("sha256");
  for (const auto& [index, digest] : digests) all.Add(BytesOfHex(digest));
  return all.Hex();
}

// A completion whose answer was lost is refused when it is repeated.
Task<std::string> Seal(Ebs& ebs, const Writing& writing) {
  Task<std::string> completion = ebs.Complete(writing.snapshot.id, static_cast<int>(writing.digests.size()),
                                              DigestOfAll(writing.digests));
  Outcome<std::string> status = co_await Attempt(std::move(completion));
  if (!status && CodeOf(status.error()) == "ConflictException") co_return "pending";
  if (!status) status.error().Rethrow();
  co_return *status;
}

Task<Snapshot> AwaitCompleted(Loop& loop, Ec2& ec2, std::string id) {
  for (int unseen = 0; unseen < kMaxUnseen;) {
    std::vector<std::string> ids{id};
    std::vector<Snapshot> found = co_await ListSnapshots(ec2, "snapshot-id", std::move(ids));
    if (found.empty()) ++unseen;
    if (!found.empty() && found.front().state == "error") {
      throw Error(Verdict::kFail, fmt::format("snapshot {} went into state error: {}", id,
                                              Excerpt(found.front().message, 300)));
    }
    if (!found.empty() && found.front().state == "completed") co_return found.front();
    co_await loop.SleepFor(kPollPause);
  }
  throw Error(Verdict::kFail, fmt::format("snapshot {} has vanished", id));
}

}  // namespace

std::optional<Block> FindBlock(const SparseFile& file, std::uint64_t place, std::uint64_t end,
                               int block_size) {
  std::uint64_t size = static_cast<std::uint64_t>(block_size);
  while (place < end) {
    place = std::max(place, file.DataFrom(place) / size * size);
    if (place >= end) break;
    std::string bytes = file.Read(place, size);
    if (!driver::cloud::IsAllZeros(bytes)) {
      bytes.resize(size, '\0');
      return Block{static_cast<int>(place / size), MakeContent(std::move(bytes))};
    }
    place += size;
  }
  return std::nullopt;
}

Task<Snapshot> WriteSnapshot(Loop& loop, BlockingPool& pool, log::Logger logger, Ebs& ebs, Ec2& ec2,
                             std::shared_ptr<const SparseFile> file, std::map<std::string, std::string> tags,
                             std::string token, std::function<void(std::uint64_t)> passed) {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  int size = static_cast<int>((file->size() + kGibibyte - 1) / kGibibyte);
  NewSnapshot snapshot = co_await ebs.Begin(size, std::move(tags), std::move(token));
  Writing writing{pool, ebs, std::move(file), std::move(snapshot), std::move(passed)};
  std::function<Task<>()> make = [&writing] { return WriteStretches(writing); };
  std::string name = "write blocks of " + writing.snapshot.id;
  co_await RunWorkers(loop, std::move(logger), std::move(name), kBlocksAtATime, std::move(make));
  std::string status = co_await Seal(ebs, writing);
  if (status == "error") {
    throw Error(Verdict::kFail, fmt::format("AWS did not accept snapshot {} of {} blocks: its state is error",
                                            writing.snapshot.id, writing.digests.size()));
  }
  Snapshot completed = co_await AwaitCompleted(loop, ec2, writing.snapshot.id);
  co_return completed;
}

}  // namespace nodepool::drivers::aws
