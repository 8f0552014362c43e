#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "async/attempt.h"
#include "async/event.h"
#include "async/task_group.h"
#include "drivers/libvirt/host/host.h"

namespace nodepool::drivers::libvirt {

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

}  // namespace nodepool::drivers::libvirt
