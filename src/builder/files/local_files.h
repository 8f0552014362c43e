#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/task.h"
#include "base/ids.h"
#include "store/records.h"

namespace nodepool::builder {

// What is to be said of a file that a build made.
struct ImageCheck {
  std::string fault;  // it is no image; empty: it may be one
  std::string doubt;  // it does not look like its format; empty: it does, or the format is not known here
};

// Reads a few bytes of the file (builder.md 7.1). `format` is the name that disk-image-create has for it.
// Error(kFail): the file cannot be read.
ImageCheck CheckImageFile(const std::string& path, const std::string& format);

// Builds with files on this host, each with its image files by format.
using LocalBuilds = std::map<store::BuildKey, std::map<std::string, std::string>>;

struct Checksums {
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
};

// The builder's part of this host's file system: `images-dir` and `build-log-dir`
// (builder.md 8.3, 9). Implementations: DirectoryFiles; a fake in tests.
//
// Files of a build are named <image>-<build id>.<anything>. Other files are never changed. Errors: kFail,
// naming the path.
class LocalFiles {
 public:
  virtual ~LocalFiles() = default;

  // All builds with files in the directory. A name that ends in a number of ten digits, the old form of build
  // ids, belongs to a build only if `images` has the image, since other programs may number their files, too.
  virtual Task<LocalBuilds> Scan(std::string directory, std::set<ImageName> images) = 0;

  // Removes all files of the build, or the image and checksum files of one format. Missing files are no
  // error.
  virtual Task<> RemoveBuild(std::string directory, store::BuildKey build) = 0;
  virtual Task<> RemoveFormat(std::string directory, store::BuildKey build, std::string format) = 0;

  // Reads the checksum files beside an image. Where one is missing or has no checksum, computes both and
  // writes their files: once, however many uploads want them.
  virtual Task<Checksums> ReadChecksums(std::string path) = 0;
  // Computes both checksums and writes their files.
  virtual Task<> WriteChecksums(std::string path) = 0;
  virtual Task<ImageCheck> CheckImage(std::string path, std::string format) = 0;
  // The bytes that the file occupies on disk; images may be sparse.
  virtual Task<std::uint64_t> AllocatedSize(std::string path) = 0;

  // Creates an empty log for the build and returns its path. Of the image's older logs, `retention` stay, at
  // least one; less than 0: all.
  virtual Task<std::string> StartLog(std::string directory, store::BuildKey build, int retention) = 0;
  // At most the last `size` bytes.
  virtual Task<std::string> ReadLogEnd(std::string path, std::size_t size) = 0;
  virtual Task<> AppendToLog(std::string path, std::string text) = 0;
  // Removes what failed or killed builds left in `folders`, according to their logs. Returns the paths.
  virtual Task<std::vector<std::string>> RemoveTemporary(std::string log_directory,
                                                         std::set<std::string> folders) = 0;
};

// The build in a file's name, and what follows the dot.
struct LocalName {
  store::BuildKey build;
  std::string rest;
  bool is_old = false;  // the id is a number of ten digits
};
std::optional<LocalName> ParseLocalName(std::string_view name);

// The real file system; everything happens on the blocking pool.
class DirectoryFiles : public LocalFiles {
 public:
  explicit DirectoryFiles(BlockingPool& pool) : pool_(pool) {}

  Task<LocalBuilds> Scan(std::string directory, std::set<ImageName> images) override;
  Task<> RemoveBuild(std::string directory, store::BuildKey build) override;
  Task<> RemoveFormat(std::string directory, store::BuildKey build, std::string format) override;
  Task<Checksums> ReadChecksums(std::string path) override;
  Task<> WriteChecksums(std::string path) override;
  Task<ImageCheck> CheckImage(std::string path, std::string format) override;
  Task<std::uint64_t> AllocatedSize(std::string path) override;
  Task<std::string> StartLog(std::string directory, store::BuildKey build, int retention) override;
  Task<std::string> ReadLogEnd(std::string path, std::size_t size) override;
  Task<> AppendToLog(std::string path, std::string text) override;
  Task<std::vector<std::string>> RemoveTemporary(std::string log_directory,
                                                 std::set<std::string> folders) override;

 private:
  BlockingPool& pool_;
  // Uploads of one file to several providers begin together: the first computes its checksums.
  Gate computing_{1};
};

// The content of builder_id.txt in the directory, which is created at the first start (builder.md 2.2).
// Creates the directory if it is missing. Throws kInvalid if it cannot be created or written.
std::string ReadBuilderId(const std::string& images_dir, Random& random);

}  // namespace nodepool::builder
