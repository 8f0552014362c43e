#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/event.h"
#include "async/task_group.h"
#include "base/ids.h"
#include "driver/driver.h"
#include "driver/provider_config.h"
#include "drivers/openstack/api/session.h"

namespace nodepool::drivers::openstack {

// The cloud images that labels name: which exist, and their ids. Ids are cached until a creation shows that
// something is out of date. Missing images are checked again after 5 s, 10 s and so on up to 300 s, and when
// a request needs one; one call checks all of them (driver-openstack.md 12.3).
class CloudImages {
 public:
  // `names`: names or ids. `refreshed` is called after each refresh. The tasks belong to `tasks`; everything
  // outlives this.
  CloudImages(Session& session, TaskGroup& tasks, Random& random, std::set<std::string> names,
              std::function<void()> refreshed);

  // The id of the active image. Error(kInvalid): there is none, or there are several.
  Task<std::string> Id(std::string name);

  // Whether Id() would succeed. kNotReady is at most 5 s old; if nothing that recent is known, the answer is
  // kUnknown, and `refreshed` is called when it is known.
  driver::Readiness ReadinessOf(const std::string& name);

  // Finds the images that are not known. Failures are logged, and tried again later.
  Task<> Refresh();

  // Reads the missing ones again, however recently that was done.
  Task<> LookAgain();

  // Drops everything cached, which is out of date.
  void Clear();

 private:
  struct Finding {
    std::string id;  // empty: `problem` says why
    std::string problem;
    SteadyTime checked;
    bool is_doubted = false;
  };

  // Null: unknown or too old.
  const Finding* Known(const std::string& name) const;
  std::vector<std::string> Missing() const;
  std::vector<std::string> Unknown() const;
  Task<> RefreshOnce();
  void Note(const std::string& name, const std::vector<std::string>& ids);
  void WatchMissing();
  Task<> Watch(std::uint64_t number);

  Session& session_;
  TaskGroup& tasks_;
  Random& random_;
  std::set<std::string> names_;
  std::function<void()> refreshed_;
  log::Logger logger_{"nodepool.OpenStackAdapter"};
  std::map<std::string, Finding> findings_;
  std::uint64_t generation_ = 0;  // of the findings; a refresh that began before Clear() is discarded
  bool is_refreshing_ = false;
  std::optional<SteadyTime> last_refresh_;  // nullopt: a new refresh may begin at once
  WaitList refreshed_once_;
  std::string last_failure_;       // of Refresh(), logged once
  std::set<std::string> watched_;  // what the latest Watch() checks for repeatedly
  std::uint64_t watches_ = 0;
};

// The request's body that creates an image's record (driver-openstack.md 15.2).
boost::json::object ImageProperties(const driver::ImageUploadParameters& upload, const CloudConfig& cloud);

// Uploads a local file to the image service and ends with the image's id once it is active and, as far as the
// service tells, contains what was sent. An image of that name that exists already is somebody else's. On
// failure or cancellation the incomplete image is removed.
Task<std::string> UploadImage(Session& session, driver::ImageUploadParameters upload);

// False: the image does not exist. kConflict: it is in use; kInvalid: it is protected.
Task<bool> DeleteImage(Session& session, std::string id);

// The images made by any Nodepool; their metadata are the nodepool_* properties.
Task<std::vector<driver::ListedImage>> ListOwnedImages(Session& session);

// The images of our project made for a provider, in any state.
Task<std::vector<driver::ListedImage>> ListImagesOf(Session& session, std::string provider);

}  // namespace nodepool::drivers::openstack
