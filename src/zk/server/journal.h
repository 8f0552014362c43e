#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "zk/server/engine.h"

namespace nodepool::zk::server {

// The tree and the sessions on disk: an SQLite database in WAL mode, whose rows are the current
// znodes; there is no log to replay and no snapshot to take. Everything blocks, so the server calls
// it on the blocking pool, one call at a time.
class Journal {
 public:
  struct Contents {
    std::vector<SessionRecord> sessions;
    std::vector<DataTree::Snapshot> znodes;  // parents first
    std::int64_t zxid = 0;                   // numbers go on after it
  };

  // Opens the file, or creates it, readable for its owner only. Error(kConflict): another process
  // uses it. Error(kInvalid) says what is wrong with it: damaged, written by a newer version, not a
  // file of this server.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Everything stored. New transactions get numbers greater than any that a client was ever sent,
  // including those that were not stored (the upper half counts the starts).
  Contents Load();

  // One transaction, on disk when the call returns. Error(kRetry): nothing was written, and a later
  // attempt may succeed (e.g. the disk is full).
  void Write(const Changes& changes);

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

// "; 0.1 MB are free in /var/lib/nodepool" where `available` bytes may be too few to work with; else
// empty.
std::string ShortageText(const std::string& folder, std::uintmax_t available);

// The same of the file system on which a file is, or is to be.
std::string ShortageNear(const std::string& path);

}  // namespace nodepool::zk::server
