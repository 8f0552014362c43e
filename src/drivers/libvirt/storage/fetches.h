#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/attempt.h"
#include "async/event.h"
#include "async/task_group.h"
#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

struct Site;

// Fetches the cloud images that have a URL and that labels use, once to each host. Their labels are not ready
// before a host has the image.
class Fetches {
 public:
  // `site` outlives this object, and the fetches belong to its tasks.
  explicit Fetches(Site& site) : site_(site) {}

  // From now on Begin() fetches. Without it, in a builder or a command, images are left to launchers.
  void Start() { is_started_ = true; }
  // Begins to fetch what usable hosts lack, unless that is under way or failed a short while ago.
  void Begin();

 private:
  using Key = std::pair<std::string, std::string>;  // host and image's name in the configuration

  Task<> Run(Host& host, std::string image);

  Site& site_;
  bool is_started_ = false;
  std::map<Key, SteadyTime> next_tries_;  // a time far away: it is under way, or done
};

// Deletes fetched images that the configuration no longer has, e.g. since their checksum has changed
// (driver-libvirt.md 12.5).
class OldFetches {
 public:
  // `config` outlives this object.
  OldFetches(const LibvirtConfig& config, log::Logger logger) : config_(config), logger_(std::move(logger)) {}

  // Deletes from the host what was in its lists of volumes, and not in the configuration, for two hours: as
  // long as another process may need to fetch it. What machines run from stays. `volumes` is the host's list
  // of `now`.
  Task<> Delete(Host& host, std::vector<VolumeInfo> volumes, SteadyTime now);

 private:
  using Key = std::pair<std::string, std::string>;  // host and volume

  bool IsOld(const std::string& volume) const;
  Task<> DeleteOne(Host& host, std::string volume);

  const LibvirtConfig& config_;
  log::Logger logger_;
  std::map<Key, SteadyTime> since_;  // when each was first seen
};

// Images that come to hosts: each one once, however many machines wait for it (driver-libvirt.md 12.4, 12.5).
class Arrivals {
 public:
  // Makes the image's volume on its host, while a mark says that it is not complete.
  using Make = std::function<Task<>()>;

  // The work belongs to `tasks`, which outlives this object.
  Arrivals(TaskGroup& tasks, log::Logger logger) : tasks_(tasks), logger_(std::move(logger)) {}

  // Ends when the host has the image: at once, or when make() has ended, which all that wait share and which
  // goes on without them. Waits for another process that makes it.
  Task<> Ensure(Host& host, std::string image, Make make);

 private:
  using Key = std::pair<std::string, std::string>;  // host and image
  struct Arrival {
    Event has_ended{"an image to arrive"};
    Outcome<> outcome;
  };

  Task<> Run(Host& host, std::string image, Make make, std::shared_ptr<Arrival> arrival);
  Task<> MakeOrAwait(Host& host, std::string image, Make make);
  // The mark of another try is there: ends when that has finished, or removes what it has left.
  Task<> AwaitOther(Host& host, std::string image);

  TaskGroup& tasks_;
  log::Logger logger_;
  std::map<Key, std::shared_ptr<Arrival>> arrivals_;  // under way
};

// Whether the host has the image, complete. A host that cannot be asked does not have it.
Task<bool> HasImage(Host& host, std::string image);

// Awaits make(), which makes and fills the image's volume, with a mark beside it that says that the image is
// not complete yet. What a failure leaves is removed; where that cannot be done now, the mark stays.
// kConflict: there is a mark already, of another try.
Task<> MakeImage(Host& host, std::string image, std::function<Task<>()> make);

// Deletes what there is of an image, also of one that is not complete. Nothing is success.
Task<> RemoveImage(Host& host, std::string image);

}  // namespace nodepool::drivers::libvirt
