#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "async/loop.h"

namespace nodepool {

// What differs when a file was written or replaced: device, inode, size and time of modification as text;
// "absent" if there is none.
std::string FileIdentity(const std::string& path);

// Notices at once when files change: they are written and closed, replaced, removed, created again,
// or a symbolic link on the way to them changes. Their directories are watched (inotify), since a
// file may be missing for a moment. Changes that another host makes to a network file system are
// not seen, nor the replacement of a directory further up.
class FileWatch {
 public:
  // `on_change` is called from the loop, sometimes also when no watched file has changed. `paths`
  // are absolute; `loop` outlives this.
  FileWatch(Loop& loop, std::vector<std::string> paths, std::function<void()> on_change);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Why some changes are not seen, for operators; empty: all are seen.
  const std::string& fault() const { return fault_; }

 private:
  void Await();
  bool ReadEvents();
  bool Concerns(int directory, const std::string& name) const;
  void WatchAll();
  void WatchWayTo(const std::string& path);
  void Watch(const std::filesystem::path& directory, const std::string& name);

  std::vector<std::string> paths_;
  std::function<void()> on_change_;
  boost::asio::posix::stream_descriptor inotify_;
  std::map<int, std::set<std::string>> names_;  // the watched names, by the watch of their directory
  std::string fault_;
  std::shared_ptr<void> alive_ = std::make_shared<int>();  // for handlers that are still queued at the end
};

}  // namespace nodepool
