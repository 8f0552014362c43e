#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "base/random.h"
#include "driver/image_upload.h"
#include "drivers/fake/fake_cloud_records.h"
#include "drivers/fake/fake_directory.h"

namespace nodepool::drivers {

struct FakeServerRequest {
  std::string name;
  std::string flavor;
  std::optional<std::string> image;  // name or id; none: not looked up
  std::optional<std::string> zone;
  std::map<std::string, std::string> metadata;
  bool should_fail = false;
};

// A cloud that exists in this process only, unless a directory keeps it (drivers.md 10.1). Time passes by the
// loop's clock; a zero latency costs no timer. Its faults have the verdicts that a
// real driver would map them to.
class FakeCloud {
 public:
  // `random` makes ids, which must not repeat in a later process.
  FakeCloud(Loop& loop, Random& random, FakeSimulation settings);

  const FakeSimulation& settings() const { return settings_; }
  // Servers and images stay as they are. A new seed starts the failures anew.
  void Configure(FakeSimulation settings);

  // --- What a cloud's API offers --------------------------------------------
  // The id of a server that is now in BUILD (or born in ERROR). kQuota, kInvalid, kFail.
  std::string CreateServer(FakeServerRequest request);
  // Ends when it is ACTIVE. kFail when it is in ERROR, kNotFound when it was deleted
  // meanwhile.
  Task<FakeServer> WaitActive(std::string id);
  // kNotFound: no such server. kRetry: a simulated failure.
  Task<> DeleteServer(std::string id);
  const std::map<std::string, FakeServer>& servers();

  // The new image's id, after the latency. `announce` is told it at once; killed from then
  // on, the image stays and never becomes active. kFail: a simulated failure.
  Task<std::string> UploadImage(FakeImage image, driver::AnnounceImage announce);
  // The same, at once.
  std::string UploadImage(std::string name, std::map<std::string, std::string> metadata,
                          FakeImageFile file = {});
  // A missing one is fine. kRetry: a simulated failure.
  Task<> DeleteImage(std::string id);
  const std::map<std::string, FakeImage>& images();

  const FakeFlavor* FindFlavor(const std::string& name) const;
  bool HasImage(const std::string& name_or_id);

  // --- Switches for tests ---------------------------------------------------
  void FailNextCreates(int count) { failing_creates_ = count; }
  void FailNextCreatesWithServer(int count) { creates_into_error_ = count; }  // a server in ERROR is left
  void HangNextCreates(int count) { hanging_creates_ = count; }               // never leaves BUILD
  void FailNextDeletes(int count) { failing_deletes_ = count; }
  void FailNextUploads(int count) { failing_uploads_ = count; }
  void FailNextImageDeletes(int count) { failing_image_deletes_ = count; }
  // Uploads in progress stay so until resumed.
  void PauseUploads() { are_uploads_paused_ = true; }
  void ResumeUploads();
  // Creations stay in BUILD until resumed.
  void PauseCreates() { is_paused_ = true; }
  void ResumeCreates();
  // The cloud removes a server that nobody deleted.
  void TakeAway(const std::string& server);
  void SetConsole(std::optional<std::string> text) { console_ = std::move(text); }
  const std::optional<std::string>& console() const { return console_; }

  std::uint64_t created_count() const { return created_count_; }
  // How often a server was asked for, also in vain.
  std::uint64_t create_attempts() const { return create_attempts_; }
  std::uint64_t deleted_count() const { return deleted_count_; }

 private:
  void Refresh();
  std::string Add(FakeImage image);  // its id
  // Makes the image, whose id is in `id` from then on, and takes its data.
  Task<> Receive(FakeImage new_image, driver::AnnounceImage announce, std::string& id);
  Task<> RemoveFailed(std::string id);
  void Remove(const std::string& image);
  bool ExceedsLimits(const FakeFlavor& flavor) const;
  bool Happens(double rate) { return rate > 0 && failures_.Between(0, 1) < rate; }
  static bool Take(int& count) { return count > 0 && count-- > 0; }

  Loop& loop_;
  Random& random_;
  FakeSimulation settings_;
  std::optional<FakeDirectory> directory_;
  SeededRandom failures_;
  std::map<std::string, FakeServer> servers_;
  std::map<std::string, SteadyTime> active_at_;  // of servers in BUILD
  std::map<std::string, FakeImage> images_;
  WaitList changed_;  // creations or uploads resumed, a server deleted
  bool is_paused_ = false;
  int failing_creates_ = 0;
  int creates_into_error_ = 0;
  int hanging_creates_ = 0;
  int failing_deletes_ = 0;
  int failing_uploads_ = 0;
  int failing_image_deletes_ = 0;
  bool are_uploads_paused_ = false;
  std::optional<std::string> console_;
  std::uint64_t created_count_ = 0;
  std::uint64_t create_attempts_ = 0;
  std::uint64_t deleted_count_ = 0;
};

// The simulated clouds of a process, by provider: builder and launcher see the same
// servers and images, and a changed configuration finds them again.
class FakeClouds {
 public:
  // Made at first use, with these settings; configured anew later.
  FakeCloud& Of(const ProviderName& provider, Loop& loop, Random& random, FakeSimulation settings);
  // Null when no provider of that name was made yet.
  FakeCloud* Find(const ProviderName& provider);

 private:
  std::map<ProviderName, std::unique_ptr<FakeCloud>> clouds_;
};

}  // namespace nodepool::drivers
