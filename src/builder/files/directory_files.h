#pragma once

#include "async/blocking_pool.h"
#include "async/gate.h"
#include "builder/files/local_files.h"

namespace nodepool::builder {

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

}  // namespace nodepool::builder
