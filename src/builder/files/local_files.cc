#include "builder/files/local_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "base/error.h"
#include "base/small_file.h"
#include "base/sparse_file.h"
#include "builder/files/temporary_files.h"

namespace nodepool::builder {

namespace {

using namespace std::string_view_literals;

constexpr std::streamoff kVhdFooter = 512;
constexpr std::string_view kQcow2Magic = "QFI\xfb"sv;
constexpr std::string_view kVhdMagic = "conectix"sv;

// The `count` bytes at `offset`, or fewer at the file's end.
std::string BytesAt(std::ifstream& file, std::streamoff offset, std::size_t count) {
  std::string bytes(count, 0);
  file.seekg(offset);
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

ImageCheck CheckImageFile(const std::string& path, const std::string& format) {
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(errno)));
  if (size == 0) return {.fault = fmt::format("its {} file is empty", format)};
  bool is_doubtful = false;
  if (format == "qcow2") is_doubtful = BytesAt(file, 0, kQcow2Magic.size()) != kQcow2Magic;
  if (format == "vhd")
    is_doubtful = size < kVhdFooter || BytesAt(file, size - kVhdFooter, kVhdMagic.size()) != kVhdMagic;
  if (!is_doubtful) return {};
  return {.doubt = fmt::format("{} does not look like a {} file", path, format)};
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kOldIdDigits = 10;
constexpr std::size_t kMd5Digits = 32;
constexpr std::size_t kSha256Digits = 64;
constexpr const char* kManifest = "d";  // the suffix of the directory that dib may create

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void Fail(const fs::path& path, const std::error_code& error) {
  throw Error(Verdict::kFail, fmt::format("{}: {}", path.string(), error.message()));
}

// Names in a directory; a directory that is missing or cannot be read is an error.
std::vector<fs::directory_entry> Entries(const std::string& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(*it);
  }
  if (error) Fail(directory, error);
  return entries;
}

void Remove(const fs::path& path) {
  std::error_code error;
  bool is_directory = fs::is_directory(fs::symlink_status(path, error));
  error.clear();
  if (is_directory) {
    fs::remove_all(path, error);
  } else {
    fs::remove(path, error);
  }
  if (error && error != std::errc::no_such_file_or_directory) Fail(path, error);
}

LocalBuilds ScanDirectory(const std::string& directory, const std::set<ImageName>& images) {
  LocalBuilds builds;
  for (const fs::directory_entry& entry : Entries(directory)) {
    std::optional<LocalName> name = ParseLocalName(entry.path().filename().string());
    if (!name || (name->is_old && !images.contains(name->build.image))) continue;
    auto& formats = builds[name->build];
    std::error_code error;
    bool is_image = name->rest.find('.') == std::string::npos && entry.is_regular_file(error);
    if (is_image) formats[name->rest] = entry.path().string();
  }
  return builds;
}

void RemoveBuildFiles(const std::string& directory, const store::BuildKey& build) {
  for (const fs::directory_entry& entry : Entries(directory)) {
    std::optional<LocalName> name = ParseLocalName(entry.path().filename().string());
    if (!name || name->build != build) continue;
    std::error_code error;
    bool is_directory = fs::is_directory(entry.symlink_status(error));
    if (!is_directory || name->rest == kManifest) Remove(entry.path());
  }
}

// The checksum in a file, if it has the right form.
std::optional<std::string> ReadChecksum(const std::string& path, std::size_t digits) {
  std::ifstream file(path, std::ios::binary);
  std::string text(digits, 0);
  if (!file.read(text.data(), static_cast<std::streamsize>(digits))) return std::nullopt;
  if (!std::ranges::all_of(text, IsHex)) return std::nullopt;
  return text;
}

std::optional<Checksums> ReadFiles(const std::string& path) {
  Checksums found{ReadChecksum(path + ".md5", kMd5Digits), ReadChecksum(path + ".sha256", kSha256Digits)};
  return found.md5 && found.sha256 ? std::optional(found) : std::nullopt;
}

std::string DigestOf(const SparseFile& file, const std::string& algorithm) {
  constexpr std::uint64_t kBlockBytes = 1 << 20;
  const std::string zeros(kBlockBytes, '\0');
  std::string buffer(kBlockBytes, '\0');
  Digest digest(algorithm);
  for (std::uint64_t place = 0; place < file.size();) {
    SparseFile::Stretch next = file.At(place);
    auto length = static_cast<std::size_t>(std::min(next.length, kBlockBytes));
    if (next.is_data) file.Read(place, buffer.data(), length);
    digest.Add(std::string_view(next.is_data ? buffer : zeros).substr(0, length));
    place += length;
  }
  return digest.Hex();
}

void Write(const std::string& path, const std::string& text, std::ios::openmode mode) {
  std::ofstream file(path, mode);
  file << text;
  file.close();
  if (!file) throw Error(Verdict::kFail, fmt::format("{}: {}", path, std::strerror(errno)));
}

// Both at once, each as fast as a processor computes it: where the disk is slower, the one finds in memory
// what the other has read.
Checksums Compute(const std::string& path) {
  SparseFile file(path);
  std::future<std::string> sha256 =
      std::async(std::launch::async, [&file] { return DigestOf(file, "sha256"); });
  std::string md5 = DigestOf(file, "md5");
  return {std::move(md5), sha256.get()};
}

void WriteFiles(const std::string& path, const Checksums& checksums) {
  Write(path + ".md5", fmt::format("{}  {}\n", *checksums.md5, path), std::ios::trunc);
  Write(path + ".sha256", fmt::format("{}  {}\n", *checksums.sha256, path), std::ios::trunc);
}

// The logs of an image's earlier builds, the newest first.
std::vector<fs::path> OldLogs(const std::string& directory, const store::BuildKey& build) {
  std::vector<std::pair<fs::file_time_type, fs::path>> logs;
  for (const fs::directory_entry& entry : Entries(directory)) {
    std::optional<LocalName> name = ParseLocalName(entry.path().filename().string());
    if (!name || name->build.image != build.image || name->rest != "log") continue;
    std::error_code error;
    logs.emplace_back(entry.last_write_time(error), entry.path());
  }
  std::ranges::sort(logs, std::ranges::greater());
  std::vector<fs::path> paths;
  for (auto& [time, path] : logs) paths.push_back(std::move(path));
  return paths;
}

// Long enough for the lines in which a build names its directories.
constexpr std::size_t kLogBeginning = 1 << 20;

std::string ReadBeginning(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLogBeginning, 0);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

std::vector<std::string> RemoveLeftovers(const std::string& log_directory,
                                         const std::set<std::string>& folders) {
  std::vector<std::string> removed;
  std::error_code error;
  if (!fs::exists(log_directory, error)) return removed;
  for (const fs::directory_entry& entry : Entries(log_directory)) {
    std::optional<LocalName> name = ParseLocalName(entry.path().filename().string());
    if (!name || name->rest != "log" || !IsAbandonedLog(entry.path().string())) continue;
    for (const std::string& directory : TemporaryDirectories(ReadBeginning(entry.path().string()))) {
      std::optional<std::string> place = RealPlace(directory, folders);
      if (place && RemoveTemporaryDirectory(*place)) removed.push_back(*place);
    }
  }
  return removed;
}

std::string MakeLog(const std::string& directory, const store::BuildKey& build, int retention) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) Fail(directory, error);
  std::vector<fs::path> logs = OldLogs(directory, build);
  std::size_t retained = retention < 0 ? logs.size() : static_cast<std::size_t>(std::max(retention, 1));
  for (std::size_t i = retained; i < logs.size(); ++i) Remove(logs[i]);
  std::string path = (fs::path(directory) / (build.log_name())).string();
  Write(path, "", std::ios::trunc);
  return path;
}

}  // namespace

std::optional<LocalName> ParseLocalName(std::string_view name) {
  for (std::size_t dash = name.rfind('-'); dash != std::string_view::npos && dash > 0;
       dash = name.rfind('-', dash - 1)) {
    std::string_view after = name.substr(dash + 1);
    std::size_t dot = after.find('.');
    std::string_view id = after.substr(0, dot);
    bool is_new = id.size() == kIdDigits && std::ranges::all_of(id, IsHex);
    bool is_old = id.size() == kOldIdDigits && std::ranges::all_of(id, IsDigit);
    if (dot == std::string_view::npos || dot + 1 == after.size() || !(is_new || is_old)) continue;
    store::BuildKey build{ImageName(std::string(name.substr(0, dash))), BuildId(std::string(id))};
    return LocalName{std::move(build), std::string(after.substr(dot + 1)), is_old};
  }
  return std::nullopt;
}

Task<LocalBuilds> DirectoryFiles::Scan(std::string directory, std::set<ImageName> images) {
  auto work = [directory, images] { return ScanDirectory(directory, images); };
  Task<LocalBuilds> scan = OnBlockingPool(pool_, std::move(work));
  LocalBuilds builds = co_await std::move(scan);
  co_return builds;
}

Task<> DirectoryFiles::RemoveBuild(std::string directory, store::BuildKey build) {
  auto work = [directory, build] { RemoveBuildFiles(directory, build); };
  Task<> remove = OnBlockingPool(pool_, std::move(work));
  co_await std::move(remove);
}

Task<> DirectoryFiles::RemoveFormat(std::string directory, store::BuildKey build, std::string format) {
  auto work = [directory, build, format] {
    std::string image = (fs::path(directory) / fmt::format("{}.{}", build.str(), format)).string();
    for (const char* suffix : {"", ".md5", ".sha256"}) Remove(image + suffix);
  };
  Task<> remove = OnBlockingPool(pool_, std::move(work));
  co_await std::move(remove);
}

Task<Checksums> DirectoryFiles::ReadChecksums(std::string path) {
  auto read = [path] { return ReadFiles(path); };
  std::optional<Checksums> found = co_await OnBlockingPool(pool_, read);
  if (found) co_return *found;
  Gate::Pass pass = co_await computing_.Enter();
  auto complete = [path] {
    if (std::optional<Checksums> before = ReadFiles(path)) return *before;
    Checksums computed = Compute(path);
    try {
      WriteFiles(path, computed);
    } catch (const Error&) {
      // They are known all the same; the next one computes them again.
    }
    return computed;
  };
  Checksums checksums = co_await OnBlockingPool(pool_, std::move(complete));
  co_return checksums;
}

Task<> DirectoryFiles::WriteChecksums(std::string path) {
  auto work = [path] { WriteFiles(path, Compute(path)); };
  Task<> write = OnBlockingPool(pool_, std::move(work));
  co_await std::move(write);
}

Task<ImageCheck> DirectoryFiles::CheckImage(std::string path, std::string format) {
  auto work = [path, format] { return CheckImageFile(path, format); };
  Task<ImageCheck> read = OnBlockingPool(pool_, std::move(work));
  ImageCheck check = co_await std::move(read);
  co_return check;
}

Task<std::uint64_t> DirectoryFiles::AllocatedSize(std::string path) {
  auto work = [path] {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) Fail(path, std::error_code(errno, std::generic_category()));
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  };
  Task<std::uint64_t> read = OnBlockingPool(pool_, std::move(work));
  std::uint64_t size = co_await std::move(read);
  co_return size;
}

Task<std::string> DirectoryFiles::StartLog(std::string directory, store::BuildKey build, int retention) {
  auto work = [directory, build, retention] { return MakeLog(directory, build, retention); };
  Task<std::string> make = OnBlockingPool(pool_, std::move(work));
  std::string path = co_await std::move(make);
  co_return path;
}

Task<std::string> DirectoryFiles::ReadLogEnd(std::string path, std::size_t size) {
  auto work = [path, size] { return ReadFileEnd(path, size); };
  Task<std::string> read = OnBlockingPool(pool_, std::move(work));
  std::string end = co_await std::move(read);
  co_return end;
}

Task<> DirectoryFiles::AppendToLog(std::string path, std::string text) {
  auto work = [path, text] { Write(path, text, std::ios::app); };
  Task<> write = OnBlockingPool(pool_, std::move(work));
  co_await std::move(write);
}

Task<std::vector<std::string>> DirectoryFiles::RemoveTemporary(std::string log_directory,
                                                               std::set<std::string> folders) {
  auto work = [log_directory, folders] { return RemoveLeftovers(log_directory, folders); };
  Task<std::vector<std::string>> remove = OnBlockingPool(pool_, std::move(work));
  std::vector<std::string> removed = co_await std::move(remove);
  co_return removed;
}

namespace {

[[noreturn]] void Refuse(const fs::path& path) {
  throw Error(Verdict::kInvalid, fmt::format("images-dir: {}: {}", path.string(), std::strerror(errno)));
}

void MakeDirectory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  throw Error(Verdict::kInvalid,
              fmt::format("images-dir {} cannot be made: {}; make it for the user that the "
                          "builder runs as: install -d -o nodepool {}",
                          path, error.message(), path));
}

}  // namespace

std::string ReadBuilderId(const std::string& images_dir, Random& random) {
  MakeDirectory(images_dir);
  fs::path path = fs::path(images_dir) / "builder_id.txt";
  errno = 0;
  if (std::ifstream file(path, std::ios::binary); file) {
    std::ostringstream text;
    text << file.rdbuf();
    // Nothing, or zeros, is what a crash of the machine has left of it.
    if (text.str().find_first_not_of('\0') != std::string::npos) return text.str();
  } else if (errno != ENOENT) {
    Refuse(path);
  }
  // Written atomically, so that a crash leaves no partial id.
  std::string id = random.Uuid();
  fs::path part = path.string() + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << id;
  file.close();
  if (!file) Refuse(part);
  fs::rename(part, path);
  return id;
}

}  // namespace nodepool::builder
