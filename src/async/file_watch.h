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

// Tells at once when something becomes of files: they are written and closed, replaced, removed,
// back again, or a symbolic link on the way to them leads elsewhere. Their directories are
// watched (inotify), since a file may be away for a moment. What another host does to a
// network file system is not seen, nor that a directory further up is replaced as a whole.
class FileWatch {
 public:
  // `on_change` is called from the loop, also when nothing that matters has happened. `paths`
  // are absolute; `loop` outlives this.
  FileWatch(Loop& loop, std::vector<std::string> paths, std::function<void()> on_change);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Why some changes are not seen, for a person; empty: they are.
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
  std::map<int, std::set<std::string>> names_;  // that matter, by the watch of their directory
  std::string fault_;
  std::shared_ptr<void> alive_ = std::make_shared<int>();  // for what the loop has in hand at the end
};

}  // namespace nodepool
