#pragma once

#include <memory>
#include <string>
#include <vector>

#include "zk/server/engine.h"

namespace nodepool::zk::server {

// The tree and the sessions on disk: an SQLite database in WAL mode, whose rows are the
// znodes as they are now; there is no log to replay and no snapshot to take. Everything
// blocks, so the server calls it on the blocking pool, one call at a time.
class Journal {
 public:
  struct Contents {
    std::vector<SessionRecord> sessions;
    std::vector<DataTree::Kept> znodes;  // parents first
    std::int64_t zxid = 0;               // numbers go on after it
  };

  // Opens the file, or makes it, readable for its owner alone. Error(kConflict):
  // another process uses it. Error(kInvalid) tells what is wrong with it: damaged,
  // written by a newer version, no file of ours.
  explicit Journal(std::string path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // All that is kept. Transactions get numbers beyond all that were ever told to a
  // client, also those that were not kept (the upper half counts the starts).
  Contents Load();

  // One transaction, on disk when the call returns. Error(kRetry): nothing was written,
  // and it may go well later (the disk is full).
  void Write(const Changes& changes);

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace nodepool::zk::server
