#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/event.h"
#include "async/task.h"
#include "async/task_group.h"
#include "driver/cloud/adapter.h"
#include "drivers/libvirt/config/libvirt_config.h"
#include "drivers/libvirt/host/host.h"
#include "drivers/libvirt/host/hypervisor.h"

namespace nodepool::drivers::libvirt {

// What a machine's disk is backed by.
struct BootImage {
  DiskFile file;
  std::uint64_t capacity = 0;  // virtual size, bytes; 0: not known
  std::int64_t modified = 0;   // seconds since 1970; 0: not known
};

// The virtual size of a volume used as `format`, bytes. Of a raw one its length: the capacity that libvirt
// reports may be from what looks like a header in it.
std::uint64_t SizeOfDisk(const VolumeInfo& volume, const std::string& format);

// The volume of the label's image on every host; nullopt: the image is a file.
std::optional<std::string> VolumeOf(const LibvirtConfig& config, const driver::LabelConfig& label,
                                    const std::optional<std::string>& image_external_id);

// The label's image as the host has it. kNotFound: it does not have it. kInvalid: a machine must not be made
// from it, since it has a backing file of its own or an unknown format.
Task<BootImage> FindBootImage(Hypervisor& host, const LibvirtConfig& config,
                              const driver::cloud::CreateParameters& parameters);

class Host;

// Which volumes of the provider's cloud images the hosts have, and how large they are.
class ImageSizes {
 public:
  // `config` outlives this object.
  explicit ImageSizes(const LibvirtConfig& config) : config_(config) {}

  // Asks the hosts; what cannot be read now stays as it was. Returns whether something has changed.
  Task<bool> Refresh(std::vector<Host*> hosts);
  // Asks the hosts if none was asked before.
  Task<> Known(std::vector<Host*> hosts);

  // Whether a host was asked.
  bool is_known() const { return is_known_; }
  // Bytes of the largest copy; nullopt: no host is known to have the volume.
  std::optional<std::uint64_t> Find(const std::string& volume) const;
  bool IsOn(const std::string& host, const std::string& volume) const;

 private:
  using Sizes = std::map<std::string, std::map<std::string, std::uint64_t>>;  // by volume and host

  bool HasVolumes() const;
  Task<> RefreshOne(Host& host);

  const LibvirtConfig& config_;
  Sizes sizes_;
  bool is_known_ = false;
};

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
