#include "zk/server/sqlite.h"

#include <fmt/format.h>

namespace nodepool::zk::server {

std::string DamageText(std::string_view detail) {
  return fmt::format("it is damaged; put a back-up in its place, or move it away to begin anew: {}", detail);
}

Sqlite::Sqlite(const std::string& path) {
  sqlite3* handle = nullptr;
  int result = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  handle_.reset(handle);
  if (result != SQLITE_OK) throw Error(Verdict::kRetry, sqlite3_errstr(result));
}

void Sqlite::Execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) Fail();
}

void Sqlite::Fail() const {
  int code = sqlite3_errcode(handle_.get());
  std::string message = sqlite3_errmsg(handle_.get());
  bool is_damaged = code == SQLITE_NOTADB || code == SQLITE_CORRUPT;
  throw Error(Verdict::kRetry, is_damaged ? DamageText(message) : message);
}

std::int64_t Sqlite::Number(const char* sql) {
  Statement statement(*this, sql);
  return statement.Next() ? statement.Number(0) : 0;
}

std::string Sqlite::Text(const char* sql) {
  Statement statement(*this, sql);
  return statement.Next() ? statement.Bytes(0) : "";
}

Statement::Statement(Sqlite& database, const char* sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  Check(sqlite3_prepare_v2(database.get(), sql, -1, &statement, nullptr));
  statement_.reset(statement);
}

Statement& Statement::Bind(int index, std::int64_t value) {
  Check(sqlite3_bind_int64(statement_.get(), index + 1, value));
  return *this;
}

Statement& Statement::BindText(int index, std::string_view text) {
  Check(
      sqlite3_bind_text64(statement_.get(), index + 1, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

Statement& Statement::BindBytes(int index, std::string_view bytes) {
  Check(sqlite3_bind_blob64(statement_.get(), index + 1, bytes.empty() ? "" : bytes.data(), bytes.size(),
                            SQLITE_STATIC));
  return *this;
}

Statement& Statement::BindNull(int index) {
  Check(sqlite3_bind_null(statement_.get(), index + 1));
  return *this;
}

void Statement::Run() {
  int result = sqlite3_step(statement_.get());
  if (result == SQLITE_DONE) {
    Check(sqlite3_reset(statement_.get()));
    return;
  }
  Error error(Verdict::kRetry, sqlite3_errmsg(database_.get()));
  sqlite3_reset(statement_.get());
  throw error;
}

bool Statement::Next() {
  int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result != SQLITE_DONE) database_.Fail();
  return false;
}

std::string Statement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return size == 0 ? "" : std::string(static_cast<const char*>(bytes), size);
}

}  // namespace nodepool::zk::server
