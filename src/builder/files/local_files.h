#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "store/records.h"

namespace nodepool::builder {

// Builds with files on this host; of each the image files by format.
using LocalBuilds = std::map<store::BuildKey, std::map<std::string, std::string>>;

struct Checksums {
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
};

// The builder's part of this host's file system: `images-dir` and `build-log-dir`
// (builder.md 8.3, 9). Implementations: DirectoryFiles; a fake in tests.
//
// What belongs to a build is named <image>-<build id>.<anything>. Nothing else is ever
// touched. Errors: kFail, naming the path.
class LocalFiles {
 public:
  virtual ~LocalFiles() = default;

  // Every build that has anything in the directory. A name that ends in a number of ten
  // digits, as builds once had, belongs to a build only when `images` has the image:
  // other people number their files, too.
  virtual Task<LocalBuilds> Scan(std::string directory, std::set<ImageName> images) = 0;

  // Removes everything of the build; of a format its image and checksum files. What is
  // gone already is fine.
  virtual Task<> RemoveBuild(std::string directory, store::BuildKey build) = 0;
  virtual Task<> RemoveFormat(std::string directory, store::BuildKey build, std::string format) = 0;

  // What stands in the checksum files beside an image; what does not is computed.
  virtual Task<Checksums> ReadChecksums(std::string path) = 0;
  // Computes both and writes the files.
  virtual Task<> WriteChecksums(std::string path) = 0;
  // Bytes that it takes up; images may be sparse.
  virtual Task<std::uint64_t> AllocatedSize(std::string path) = 0;

  // Makes room and an empty log for the build; of the older logs of the image only
  // `retention` stay, at least one; less than 0: all. Returns its path.
  virtual Task<std::string> StartLog(std::string directory, store::BuildKey build, int retention) = 0;
  virtual Task<> AppendToLog(std::string path, std::string text) = 0;
  // Removes what builds that are over but did not end well left behind outside of
  // `images-dir`, as their logs name it. Returns the paths.
  virtual Task<std::vector<std::string>> RemoveTemporary(std::string log_directory) = 0;
};

// The build that a file's name tells, and what follows the dot.
struct LocalName {
  store::BuildKey build;
  std::string rest;
  bool is_old = false;  // the id is a number of ten digits
};
std::optional<LocalName> ParseLocalName(std::string_view name);

}  // namespace nodepool::builder
