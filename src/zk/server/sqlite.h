#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

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

}  // namespace nodepool::zk::server
