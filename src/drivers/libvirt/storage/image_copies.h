#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "async/attempt.h"
#include "async/event.h"
#include "async/task_group.h"
#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

// Copies of uploaded images to hosts that lack them, from hosts that have them (driver-libvirt.md 12.4).
class ImageCopies {
 public:
  // The copies belong to `tasks`; everything outlives this object. A copy has `limit` to end.
  ImageCopies(TaskGroup& tasks, const std::vector<std::unique_ptr<Host>>& hosts, Duration limit,
              log::Logger logger);

  // Ends when the host has the image: at once, or when its copy has ended, which all that wait share and
  // which goes on without them. Waits for a copy that another process makes. kNotFound: no usable host has
  // it.
  Task<> Ensure(Host& target, std::string image);

 private:
  using Key = std::pair<std::string, std::string>;  // host and image
  struct Copy {
    Event has_ended{"the copy of an image to end"};
    Outcome<> outcome;
  };

  Task<> Run(Host& target, std::string image, std::shared_ptr<Copy> copy);
  Task<> CopyTo(Host& target, std::string image);
  Task<> CopyOnce(Host& target, std::string image);
  // The mark of another try is there: ends when that has finished, or removes what it has left.
  Task<> AwaitOther(Host& target, std::string image);
  Task<Host*> FindSource(std::string image);

  TaskGroup& tasks_;
  const std::vector<std::unique_ptr<Host>>& hosts_;
  Duration limit_;
  log::Logger logger_;
  std::map<Key, std::shared_ptr<Copy>> copies_;  // under way
};

}  // namespace nodepool::drivers::libvirt
