#include "builder/files/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "builder/files/fail_at.h"

namespace nodepool::builder {
namespace {

using Directory = std::unique_ptr<DIR, decltype([](DIR* directory) { ::closedir(directory); })>;

// Null with errno ENOTDIR or ELOOP: it is no directory.
Directory Open(int parent, const char* name) {
  int file = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  return Directory(file < 0 ? nullptr : ::fdopendir(file));
}

// Which mount the directory is on. A bind mount has the device of what it shows, but a number of its own.
std::pair<dev_t, std::uint64_t> MountOf(DIR* directory, const std::string& path) {
  struct statx status {};
  if (::statx(::dirfd(directory), "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0) FailAt(path, errno);
  return {makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_mnt_id};
}

class Removal {
 public:
  Removal(DIR* top, const std::string& path) : mount_(MountOf(top, path)) {}

  void Empty(DIR* directory, const std::string& path) {
    while (true) {
      errno = 0;
      dirent* entry = ::readdir(directory);
      if (entry == nullptr && errno != 0) FailAt(path, errno);
      if (entry == nullptr) return;
      std::string name = entry->d_name;
      if (name != "." && name != "..") RemoveEntry(::dirfd(directory), name, path + "/" + name);
    }
  }

 private:
  void RemoveEntry(int parent, const std::string& name, const std::string& path) {
    Directory directory = Open(parent, name.c_str());
    if (!directory && errno != ENOTDIR && errno != ELOOP && errno != ENXIO) FailAt(path, errno);
    if (directory) {
      if (MountOf(directory.get(), path) != mount_)
        throw Error(Verdict::kFail, fmt::format("{} is a mount; unmount it", path));
      Empty(directory.get(), path);
    }
    if (::unlinkat(parent, name.c_str(), directory ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
      FailAt(path, errno);
  }

  const std::pair<dev_t, std::uint64_t> mount_;
};

}  // namespace

void RemoveTree(const std::string& path) {
  Directory top = Open(AT_FDCWD, path.c_str());
  if (!top && errno == ENOENT) return;
  if (!top) FailAt(path, errno);
  Removal(top.get(), path).Empty(top.get(), path);
  if (::rmdir(path.c_str()) != 0) FailAt(path, errno);
}

}  // namespace nodepool::builder
