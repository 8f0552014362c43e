#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/loop.h"
#include "base/ids.h"
#include "driver/driver.h"
#include "drivers/fake/fake_config.h"

namespace nodepool::drivers {

enum class FakeServerStatus { kBuild, kActive, kError };

struct FakeServer {
  std::string id;
  std::string name;
  FakeFlavor flavor;
  std::string zone;
  std::map<std::string, std::string> metadata;
  FakeServerStatus status = FakeServerStatus::kBuild;
};

// What the simulation stores of an upload.
struct FakeImageFile {
  std::string format;
  std::uint64_t size = 0;  // bytes
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
};

struct FakeImage {
  std::string id;
  std::string name;
  std::map<std::string, std::string> metadata;
  FakeImageFile file;
  bool is_active = true;  // the cloud has all of it
};

// Servers and images of a simulated cloud as files named by their ids. Several processes may use the same
// directory: files appear and vanish atomically. Every function throws kFail, naming the path, on a fault of
// the file system.
class FakeDirectory {
 public:
  // Creates the directory if it does not exist.
  explicit FakeDirectory(std::string path);

  void Add(const FakeServer& server) const;
  void Add(const FakeImage& image) const;
  void Remove(const std::string& id) const;  // a missing one is no error

  // Updates the maps to the directory's contents; reads only what they lack. A server made by another process
  // counts as active. A file that is not a record is skipped.
  void Refresh(std::map<std::string, FakeServer>& servers, std::map<std::string, FakeImage>& images) const;

 private:
  void Write(const std::string& id, const std::string& text) const;

  std::string path_;
};

struct FakeServerRequest {
  std::string name;
  std::string flavor;
  std::optional<std::string> image;  // name or id; none: not looked up
  std::optional<std::string> zone;
  std::map<std::string, std::string> metadata;
  bool should_fail = false;
};

// A cloud that exists in this process only, unless it is stored in a directory (drivers.md 10.1). It uses the
// loop's clock; zero latency takes no timer. Its faults have the verdicts to which a real driver would map
// them.
class FakeCloud {
 public:
  // `random` makes ids, which must not be repeated by a later process.
  FakeCloud(Loop& loop, Random& random, FakeSimulation settings);

  const FakeSimulation& settings() const { return settings_; }
  // Servers and images are unchanged. A new seed restarts the sequence of failures.
  void Configure(FakeSimulation settings);

  // --- What a cloud's API offers --------------------------------------------
  // Returns the id of a server that is now in BUILD, or in ERROR from the start. Errors: kQuota, kInvalid,
  // kFail.
  std::string CreateServer(FakeServerRequest request);
  // Ends when it is ACTIVE. kFail when it is in ERROR, kNotFound when it was deleted
  // meanwhile.
  Task<FakeServer> WaitActive(std::string id);
  // kNotFound: no such server. kRetry: a simulated failure.
  Task<> DeleteServer(std::string id);
  const std::map<std::string, FakeServer>& servers();

  // Returns the new image's id after the latency. `announce` gets it at once; if the upload is cancelled
  // after that, the image stays and never becomes active. kFail: a simulated failure.
  using Report = std::function<void(const driver::UploadProgress&)>;
  Task<std::string> UploadImage(
      FakeImage image, driver::AnnounceImage announce, Report report = [](const driver::UploadProgress&) {});
  // The same, at once.
  std::string UploadImage(std::string name, std::map<std::string, std::string> metadata,
                          FakeImageFile file = {});
  // A missing image is no error. kRetry: a simulated failure.
  Task<> DeleteImage(std::string id);
  const std::map<std::string, FakeImage>& images();

  const FakeFlavor* FindFlavor(const std::string& name) const;
  bool HasImage(const std::string& name_or_id);

  // --- Switches for tests ---------------------------------------------------
  void FailNextCreates(int count) { failing_creates_ = count; }
  void FailNextCreatesWithServer(int count) { creates_into_error_ = count; }  // leave a server in ERROR
  void HangNextCreates(int count) { hanging_creates_ = count; }               // never leaves BUILD
  // So many of the servers of a flavor, or of all, go into ERROR when they should become ACTIVE.
  void BreakServers(double share, std::string flavor = "") {
    broken_share_ = share;
    broken_flavor_ = std::move(flavor);
  }
  void FailNextDeletes(int count) { failing_deletes_ = count; }
  void FailNextUploads(int count) { failing_uploads_ = count; }
  void FailNextImageDeletes(int count) { failing_image_deletes_ = count; }
  // Uploads in progress stay so until resumed.
  void PauseUploads() { are_uploads_paused_ = true; }
  void ResumeUploads();
  // Creations stay in BUILD until resumed.
  void PauseCreates() { is_paused_ = true; }
  void ResumeCreates();
  // The cloud takes a server away.
  void TakeAway(const std::string& server);
  void SetConsole(std::optional<std::string> text) { console_ = std::move(text); }
  const std::optional<std::string>& console() const { return console_; }

  std::uint64_t created_count() const { return created_count_; }
  // The number of attempts to create a server, including failed ones.
  std::uint64_t create_attempts() const { return create_attempts_; }
  std::uint64_t deleted_count() const { return deleted_count_; }

 private:
  void Refresh();
  std::string Add(FakeImage image);  // its id
  // Creates the image, sets `id`, then receives the data.
  Task<> Receive(FakeImage new_image, driver::AnnounceImage announce, Report report, std::string& id);
  Task<> RemoveFailed(std::string id);
  void Remove(const std::string& image);
  bool ExceedsLimits(const FakeFlavor& flavor) const;
  // False: there is no such server.
  bool Erase(const std::string& id);
  // So many servers more or, if negative, less use cores and memory.
  void Count(const FakeFlavor& flavor, int servers);
  bool Happens(double rate) { return rate > 0 && failures_.Between(0, 1) < rate; }
  static bool Take(int& count) { return count > 0 && count-- > 0; }

  Loop& loop_;
  Random& random_;
  FakeSimulation settings_;
  std::optional<FakeDirectory> directory_;
  SeededRandom failures_;
  std::map<std::string, FakeServer> servers_;
  double used_cores_ = 0;                        // by servers_
  double used_ram_ = 0;                          // MiB
  std::map<std::string, SteadyTime> active_at_;  // of servers in BUILD
  std::map<std::string, FakeImage> images_;
  WaitList changed_;  // notified when creations or uploads are resumed, or a server is deleted
  bool is_paused_ = false;
  int failing_creates_ = 0;
  int creates_into_error_ = 0;
  int hanging_creates_ = 0;
  double broken_share_ = 0;
  std::string broken_flavor_;
  std::set<std::string> broken_;  // servers in BUILD that go into ERROR
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
  // Created at first use with these settings; later calls reconfigure it.
  FakeCloud& Of(const ProviderName& provider, Loop& loop, Random& random, FakeSimulation settings);
  // Null: Of() was not called for that name yet.
  FakeCloud* Find(const ProviderName& provider);

 private:
  std::map<ProviderName, std::unique_ptr<FakeCloud>> clouds_;
};

}  // namespace nodepool::drivers
