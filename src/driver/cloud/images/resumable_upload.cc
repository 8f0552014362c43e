#include "driver/cloud/images/resumable_upload.h"

#include <fmt/format.h>

#include "async/backoff.h"
#include "async/blocking_pool.h"
#include "async/task.h"
#include "base/crypto.h"
#include "base/text.h"
#include "driver/cloud/api/api_error.h"

namespace nodepool::driver::cloud {

namespace {

constexpr std::size_t kPart = 8 << 20;  // a multiple of 256 KiB
constexpr int kBeginnings = 3;
// With the pauses between them about five minutes, which is little beside the time of an upload.
constexpr int kFaultsInARow = 12;
constexpr Backoff::Settings kPartPauses{std::chrono::seconds(1), std::chrono::seconds(60)};

// An upload in parts under way.
class Parts {
 public:
  Parts(const DriverEnvironment& environment, ResumableUploads& service, const ResumableObject& object,
        std::string upload)
      : environment_(environment),
        service_(service),
        name_(object.name),
        upload_(std::move(upload)),
        source_(object.open()) {}

  // False: the service has lost the upload.
  Task<bool> Send(const std::function<void(std::uint64_t)>& sent) {
    Backoff pauses(kPartPauses, environment_.random);
    bool is_doubtful = false;  // what has arrived is not known
    for (int faults = 0;; ++faults) {
      co_await Fill();
      std::optional<std::uint64_t> total;
      if (source_->is_at_end()) total = place_ + part_.size();
      std::string bytes = part_;
      Task<UploadState> call = is_doubtful ? service_.AskState(upload_)
                                           : service_.PutPart(upload_, place_, std::move(bytes), total);
      Outcome<UploadState> state = co_await Attempt(std::move(call));
      if (IsLost(state)) co_return false;
      bool is_final = !state && (!IsOutage(state.error().verdict()) || faults >= kFaultsInARow);
      if (is_final) state.error().Rethrow();
      is_doubtful = !state;
      if (state && state->is_complete) co_return Check(*state);
      bool has_moved = state && state->received > place_;
      if (state && (!Accept(state->received) || faults >= kFaultsInARow)) co_return false;
      sent(source_->place());
      if (has_moved) {
        faults = -1;
        pauses.Reset();
      } else if (is_doubtful) {
        Duration pause = pauses.Next();
        co_await environment_.loop.SleepFor(pause);
      }
    }
  }

 private:
  Task<> Fill() {
    while (part_.size() < kPart && !source_->is_at_end()) {
      auto read = [source = source_, size = kPart - part_.size()] { return source->Read(size); };
      std::string bytes = co_await OnBlockingPool(environment_.blocking_pool, std::move(read));
      md5_.Add(bytes);
      part_ += bytes;
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
    if (!source_->is_at_end()) return false;
    std::string md5 = Base64(md5_.Bytes());
    if (state.md5.empty() || state.md5 == md5) return true;
    throw Error(Verdict::kFail, fmt::format("object {} has the MD5 {}, and {} was sent: its content was "
                                            "changed on the way",
                                            name_, state.md5, md5));
  }

  const DriverEnvironment& environment_;
  ResumableUploads& service_;
  std::string name_;
  std::string upload_;
  std::shared_ptr<ByteSource> source_;  // also of a read that goes on when the task is cancelled
  Digest md5_{"md5"};                   // of what was read
  std::string part_;                    // what has not arrived
  std::uint64_t place_ = 0;             // of the part in the object
};

Task<> CancelQuietly(ResumableUploads& service, log::Logger logger, std::string upload) {
  Outcome<> done = co_await Attempt(service.CancelUpload(std::move(upload)));
  if (!done) logger.Debug("An upload ends by itself: {}", done.error().message());
}

}  // namespace

Task<> PutResumable(DriverEnvironment environment, log::Logger logger, ResumableUploads& service,
                    ResumableObject object, std::function<void(std::uint64_t)> sent) {
  for (int beginning = 1; beginning <= kBeginnings; ++beginning) {
    std::string upload = co_await service.BeginUpload(object.name, object.metadata);
    Parts parts(environment, service, object, upload);
    auto cancel = [&](const Failure&) { return CancelQuietly(service, logger, upload); };
    bool is_done = co_await OnFailure(parts.Send(sent), cancel);
    if (is_done) co_return;
    logger.Warning("{} has lost the upload of {}, which begins again", object.service, object.name);
  }
  throw Error(Verdict::kFail,
              fmt::format("{} lost the upload of {} {} times", object.service, object.name, kBeginnings));
}

}  // namespace nodepool::driver::cloud
