#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "zk/server/engine.h"

namespace nodepool::zk::server {

// What to do about a damaged database.
std::string DamageText(std::string_view detail);

// SQLite's handles as objects. Failures throw Error(kRetry) with SQLite's message.
class Sqlite {
 public:
  explicit Sqlite(const std::string& path);

  void Execute(const char* sql);
  // The single column of the single row.
  std::int64_t Number(const char* sql);
  std::string Text(const char* sql);

  sqlite3* get() const { return handle_.get(); }
  [[noreturn]] void Fail() const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::unique_ptr<sqlite3, Close> handle_;
};

// A prepared statement; columns and parameters count from 0.
class Statement {
 public:
  Statement(Sqlite& database, const char* sql);

  Statement& Bind(int index, std::int64_t value);
  // The bytes must live until Run() or the last Next().
  Statement& BindText(int index, std::string_view text);
  Statement& BindBytes(int index, std::string_view bytes);
  Statement& BindNull(int index);

  // Executes a statement without rows and makes it ready for the next use.
  void Run();
  // The next row, if there is one.
  bool Next();
  std::int64_t Number(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  bool IsNull(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
  std::string Bytes(int column) const;

 private:
  void Check(int result) const {
    if (result != SQLITE_OK) database_.Fail();
  }

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Sqlite& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

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
