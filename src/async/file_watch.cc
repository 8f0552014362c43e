#include "async/file_watch.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <utility>

namespace nodepool {
namespace {

namespace fs = std::filesystem;

// A file that is being written counts as changed only when it is closed.
constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                  IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr int kMaxLinks = 40;  // the kernel's limit

void PutBefore(std::deque<std::string>& names, const fs::path& path) {
  std::deque<std::string> all;
  for (const fs::path& name : path.relative_path()) all.push_back(name);
  names.insert(names.begin(), all.begin(), all.end());
}

}  // namespace

std::string FileIdentity(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "absent";
  return fmt::format("{}:{}:{}:{}.{:09}", status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

FileWatch::FileWatch(Loop& loop, std::vector<std::string> paths, std::function<void()> on_change)
    : paths_(std::move(paths)), on_change_(std::move(on_change)), inotify_(loop.context()) {
  int inotify = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (inotify < 0) {
    fault_ = fmt::format("inotify: {}", std::strerror(errno));
    return;
  }
  inotify_.assign(inotify);
  WatchAll();
  Await();
}

FileWatch::~FileWatch() = default;

void FileWatch::Await() {
  inotify_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                      [this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
                        if (error || alive.expired()) return;
                        if (ReadEvents()) {
                          WatchAll();  // first: later changes are seen
                          on_change_();
                        }
                        Await();
                      });
}

// Returns whether one of the events concerns a watched file.
bool FileWatch::ReadEvents() {
  alignas(inotify_event) char buffer[4096];
  bool is_concerned = false;
  ssize_t size = 0;
  while ((size = ::read(inotify_.native_handle(), buffer, sizeof(buffer))) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto& event = reinterpret_cast<const inotify_event&>(buffer[at]);
      at += static_cast<ssize_t>(sizeof(event) + event.len);
      bool is_lost = (event.mask & IN_Q_OVERFLOW) != 0;
      if (is_lost || Concerns(event.wd, event.len > 0 ? event.name : "")) is_concerned = true;
    }
  }
  return is_concerned;
}

// An event without a name concerns the directory itself.
bool FileWatch::Concerns(int directory, const std::string& name) const {
  auto names = names_.find(directory);
  return names != names_.end() && (name.empty() || names->second.contains(name));
}

void FileWatch::WatchAll() {
  std::map<int, std::set<std::string>> former = std::exchange(names_, {});
  for (const std::string& path : paths_) WatchWayTo(path);
  for (const auto& [directory, names] : former) {
    if (!names_.contains(directory)) ::inotify_rm_watch(inotify_.native_handle(), directory);
  }
}

// Each link, and the file or the first missing component, is watched before it is read, so that no
// change is missed.
void FileWatch::WatchWayTo(const std::string& path) {
  std::deque<std::string> rest;
  PutBefore(rest, path);
  fs::path directory = "/";
  std::error_code error;
  for (int links = 0; !rest.empty() && links < kMaxLinks;) {
    std::string name = std::exchange(rest.front(), {});
    rest.pop_front();
    fs::path next = (directory / name).lexically_normal();
    bool is_on_the_way = !rest.empty() && fs::symlink_status(next, error).type() == fs::file_type::directory;
    if (!is_on_the_way) Watch(directory, name);
    fs::file_type type = fs::symlink_status(next, error).type();
    if (type == fs::file_type::symlink) {
      fs::path target = fs::read_symlink(next, error);
      if (target.is_absolute()) directory = "/";
      PutBefore(rest, target);
      ++links;
    } else if (type == fs::file_type::directory) {
      directory = next;
    } else {
      return;
    }
  }
}

void FileWatch::Watch(const fs::path& directory, const std::string& name) {
  int watch = ::inotify_add_watch(inotify_.native_handle(), directory.c_str(), kEvents);
  if (watch >= 0) {
    names_[watch].insert(name);
  } else if (errno != ENOENT && errno != ENOTDIR) {
    fault_ = fmt::format("inotify: {}: {}", directory.string(), std::strerror(errno));
  }
}

}  // namespace nodepool
