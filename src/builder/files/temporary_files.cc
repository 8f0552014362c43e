#include "builder/files/temporary_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/text.h"

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

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGoodEnd = "\nExit code: 0\n";

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Whether this is an absolute path whose last part is made by dib with mktemp.
bool IsTemporaryDirectory(const std::string& path) {
  fs::path place(path);
  std::string name = place.filename().string();
  constexpr std::size_t kPrefix = 10;
  constexpr std::size_t kRandom = 8;
  bool is_named = name.starts_with("dib_build.") || name.starts_with("dib_image.");
  auto is_random = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return is_named && name.size() == kPrefix + kRandom &&
         std::all_of(name.begin() + kPrefix, name.end(), is_random) && place.is_absolute() &&
         place.lexically_normal() == place;
}

bool EndsWell(const std::string& log) {
  std::ifstream file(log, std::ios::binary);
  std::string end(kGoodEnd.size(), 0);
  file.seekg(-static_cast<std::streamoff>(end.size()), std::ios::end);
  file.read(end.data(), static_cast<std::streamsize>(end.size()));
  return file && end == kGoodEnd;
}

// A write lease is granted only if no other process has the file open.
bool IsOpenElsewhere(const std::string& path) {
  Descriptor file(path, O_RDONLY);
  bool is_alone = file.number() >= 0 && ::fcntl(file.number(), F_SETLEASE, F_WRLCK) == 0;
  if (is_alone) ::fcntl(file.number(), F_SETLEASE, F_UNLCK);
  return !is_alone;
}

void DetachLoopDevices(const std::string& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/sys/block", error)) {
    std::ifstream file(entry.path() / "loop/backing_file");
    std::string backing;
    if (!std::getline(file, backing) || !backing.starts_with(directory + "/")) continue;
    std::string path = "/dev/" + entry.path().filename().string();
    Descriptor device(path, O_RDWR);
    // ENXIO: detached by another process meanwhile.
    bool is_detached =
        device.number() >= 0 && (::ioctl(device.number(), LOOP_CLR_FD, 0) == 0 || errno == ENXIO);
    if (!is_detached) FailAt(path, errno);
  }
}

// The kernel escapes blanks and some other characters as \ooo.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

void UndoMounts(const std::string& directory) {
  std::ifstream table("/proc/self/mountinfo");
  std::vector<std::string> places;
  for (std::string line; std::getline(table, line);) {
    constexpr std::size_t kMountPoint = 4;
    std::vector<std::string> fields = Split(line, ' ');
    if (fields.size() <= kMountPoint) continue;
    std::string place = Unescaped(fields[kMountPoint]);
    if (place == directory || place.starts_with(directory + "/")) places.push_back(std::move(place));
  }
  std::ranges::reverse(places);
  for (const std::string& place : places) {
    if (::umount2(place.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) FailAt(place, errno);
  }
}

}  // namespace

std::vector<std::string> TemporaryDirectories(std::string_view log) {
  std::vector<std::string> directories;
  for (const std::string& line : Split(log, '\n')) {
    for (std::string_view assignment : {"TMP_BUILD_DIR=", "TMP_IMAGE_DIR="}) {
      std::size_t start = line.find(assignment);
      if (start == std::string::npos) continue;
      std::string directory = line.substr(start + assignment.size());
      bool is_known = std::ranges::find(directories, directory) != directories.end();
      if (IsTemporaryDirectory(directory) && !is_known) directories.push_back(std::move(directory));
    }
  }
  return directories;
}

bool IsAbandonedLog(const std::string& path) { return !EndsWell(path) && !IsOpenElsewhere(path); }

std::optional<std::string> RealPlace(const std::string& directory, const std::set<std::string>& folders) {
  fs::path path(directory);
  std::error_code error;
  fs::path parent = fs::canonical(path.parent_path(), error);
  if (error) return std::nullopt;
  auto is_parent = [&](const std::string& folder) {
    std::error_code missing;
    return fs::canonical(folder, missing) == parent && !missing;
  };
  if (std::ranges::none_of(folders, is_parent)) return std::nullopt;
  return (parent / path.filename()).string();
}

bool RemoveTemporaryDirectory(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(path, error))) return false;
  DetachLoopDevices(path);
  UndoMounts(path);
  RemoveTree(path);
  return true;
}

}  // namespace nodepool::builder
