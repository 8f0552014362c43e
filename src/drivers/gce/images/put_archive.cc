#include <fmt/format.h>

#include "async/attempt.h"
#include "async/backoff.h"
#include "async/blocking_pool.h"
#include "async/cleanup.h"
#include "driver/cloud/outage.h"
#include "drivers/gce/images/archive_stream.h"
#include "drivers/gce/images/images.h"

namespace nodepool::drivers::gce {

namespace api = driver::cloud::api;
using driver::cloud::ImageFile;

namespace {

constexpr std::size_t kPart = 8 << 20;  // a multiple of 256 KiB
constexpr int kBeginnings = 3;
// With the pauses between them about five minutes, which is little beside the time of an upload.
constexpr int kFaultsInARow = 12;
constexpr Backoff::Settings kPartPauses{std::chrono::seconds(1), std::chrono::seconds(60)};

// An upload in parts under way.
class Parts {
 public:
  Parts(GceCloud& cloud, std::shared_ptr<const ImageFile> file, std::string key, std::string upload,
        std::function<void(std::uint64_t)> sent)
      : cloud_(cloud),
        key_(std::move(key)),
        upload_(std::move(upload)),
        stream_(std::make_shared<ArchiveStream>(std::move(file))),
        sent_(std::move(sent)) {}

  // False: the service has lost the upload.
  Task<bool> Send() {
    Backoff pauses(kPartPauses, cloud_.environment.random);
    bool is_doubtful = false;  // what has arrived is not known
    for (int faults = 0;; ++faults) {
      co_await Fill();
      std::optional<std::uint64_t> total;
      if (stream_->is_at_end()) total = place_ + part_.size();
      std::string bytes = part_;
      Task<UploadState> call = is_doubtful
                                   ? cloud_.storage->AskState(upload_)
                                   : cloud_.storage->PutPart(upload_, place_, std::move(bytes), total);
      Outcome<UploadState> state = co_await Attempt(std::move(call));
      if (IsLost(state)) co_return false;
      bool is_final =
          !state && (!driver::cloud::IsOutage(state.error().verdict()) || faults >= kFaultsInARow);
      if (is_final) state.error().Rethrow();
      is_doubtful = !state;
      if (state && state->is_complete) co_return Check(*state);
      bool has_moved = state && state->received > place_;
      if (state && (!Accept(state->received) || faults >= kFaultsInARow)) co_return false;
      sent_(stream_->place());
      if (has_moved) {
        faults = -1;
        pauses.Reset();
      } else if (is_doubtful) {
        Duration pause = pauses.Next();
        co_await cloud_.loop().SleepFor(pause);
      }
    }
  }

 private:
  Task<> Fill() {
    while (part_.size() < kPart && !stream_->is_at_end()) {
      auto read = [stream = stream_, size = kPart - part_.size()] { return stream->Read(size); };
      part_ += co_await OnBlockingPool(cloud_.environment.blocking_pool, std::move(read));
    }
  }

  static bool IsLost(const Outcome<UploadState>& state) {
    int status = api::StatusOf(state);
    return status == 404 || status == 410;
  }

  // What has arrived is dropped here. False: the service has less than it had, or more than there is.
  bool Accept(std::uint64_t received) {
    if (received < place_ || received - place_ > part_.size()) return false;
    part_.erase(0, received - place_);
    place_ = received;
    return true;
  }

  bool Check(const UploadState& state) {
    if (!stream_->is_at_end()) return false;
    std::string md5 = stream_->Md5();
    if (state.md5.empty() || state.md5 == md5) return true;
    throw Error(Verdict::kFail, fmt::format("object {} has the MD5 {}, and {} was sent: its content was "
                                            "changed on the way",
                                            key_, state.md5, md5));
  }

  GceCloud& cloud_;
  std::string key_;
  std::string upload_;
  std::shared_ptr<ArchiveStream> stream_;  // also of a read that goes on when the task is cancelled
  std::function<void(std::uint64_t)> sent_;
  std::string part_;         // what has not arrived
  std::uint64_t place_ = 0;  // of the part in the object
};

Task<> CancelQuietly(GceCloud& cloud, std::string upload) {
  Outcome<> done = co_await Attempt(cloud.storage->CancelUpload(std::move(upload)));
  if (!done) cloud.logger.Debug("An upload ends by itself: {}", done.error().message());
}

}  // namespace

Task<> PutArchive(GceCloud& cloud, std::shared_ptr<const ImageFile> file, std::string key,
                  std::map<std::string, std::string> metadata, std::function<void(std::uint64_t)> sent) {
  for (int beginning = 1; beginning <= kBeginnings; ++beginning) {
    std::string upload = co_await cloud.storage->BeginUpload(key, metadata);
    Parts parts(cloud, file, key, upload, sent);
    auto cancel = [&cloud, upload](const Failure&) { return CancelQuietly(cloud, upload); };
    bool is_done = co_await OnFailure(parts.Send(), cancel);
    if (is_done) co_return;
    cloud.logger.Warning("Cloud Storage has lost the upload of {}, which begins again", key);
  }
  throw Error(Verdict::kFail, fmt::format("Cloud Storage lost the upload of {} {} times", key, kBeginnings));
}

}  // namespace nodepool::drivers::gce
