#include "zk/server/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "zk/server/request.h"

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

namespace {

constexpr std::int64_t kApplicationId = 0x4e505a4b;
constexpr std::int64_t kSchemaVersion = 1;

constexpr const char* kSchema = R"(
  CREATE TABLE znode (path TEXT PRIMARY KEY, data BLOB NOT NULL, czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL,
    pzxid INTEGER NOT NULL, ctime INTEGER NOT NULL, mtime INTEGER NOT NULL, version INTEGER NOT NULL,
    aversion INTEGER NOT NULL, owner INTEGER NOT NULL, created INTEGER NOT NULL, acl BLOB);
  CREATE TABLE session (id INTEGER PRIMARY KEY, password BLOB NOT NULL, timeout_ms INTEGER NOT NULL);
  CREATE TABLE counter (zxid INTEGER NOT NULL);
  INSERT INTO counter VALUES (0);
  PRAGMA application_id = 1313888843;
  PRAGMA user_version = 1;
)";
// Beside the schema, since earlier versions, which do not know it, may use the same file.
constexpr const char* kOwnSessions = "CREATE TABLE IF NOT EXISTS own_session (id INTEGER PRIMARY KEY)";
static_assert(kApplicationId == 1313888843 && kSchemaVersion == 1, "as in the schema");

// Held while the database is in use, so that no second server writes to it.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0) {
      throw Error(Verdict::kInvalid, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
    }
    if (flock(file_, LOCK_EX | LOCK_NB) == 0) {
      WriteOwner();
      return;
    }
    std::string owner = Owner();
    close(file_);
    throw Error(Verdict::kConflict, fmt::format("{} is in use by {}", path, owner));
  }
  ~FileLock() { close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  void WriteOwner() {
    std::string text = fmt::format("{}\n", getpid());
    // For messages only, so it may be missing when the disk is full.
    if (ftruncate(file_, 0) == 0) [[maybe_unused]]
      ssize_t written = pwrite(file_, text.data(), text.size(), 0);
  }

  std::string Owner() const {
    char text[16];
    ssize_t length = pread(file_, text, sizeof text, 0);
    std::string_view line(text, length > 0 ? static_cast<std::size_t>(length) : 0);
    if (!line.ends_with('\n')) return "another process";
    return fmt::format("process {}", line.substr(0, line.size() - 1));
  }

  int file_;
};

// SQLite would make it readable for all users.
void MakeFile(const std::string& path) {
  int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    throw Error(Verdict::kInvalid, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  close(file);
}

void CheckDatabase(Sqlite& database) {
  std::int64_t application = database.Number("PRAGMA application_id");
  std::int64_t version = database.Number("PRAGMA user_version");
  if (application != kApplicationId) throw Error(Verdict::kInvalid, "it is not a file of this server");
  if (version > kSchemaVersion) {
    throw Error(Verdict::kInvalid,
                fmt::format("it was written by a newer version (schema {}, this one knows {})", version,
                            kSchemaVersion));
  }
  std::string verdict = database.Text("PRAGMA integrity_check(1)");
  if (verdict != "ok") throw Error(Verdict::kInvalid, DamageText(verdict));
}

std::int32_t Narrow(std::int64_t number) { return static_cast<std::int32_t>(number); }

}  // namespace

struct Journal::Database {
  explicit Database(const std::string& path) : lock(path + ".lock"), sqlite(Open(path)) {
    sqlite.Execute("PRAGMA journal_mode = WAL");
    // In WAL mode less would not have a transaction on disk when it is committed.
    sqlite.Execute("PRAGMA synchronous = FULL");
    bool is_new = sqlite.Number("SELECT count(*) FROM sqlite_master") == 0;
    if (is_new) {
      sqlite.Execute("BEGIN");
      sqlite.Execute(kSchema);
      sqlite.Execute("COMMIT");
    }
    CheckDatabase(sqlite);
    sqlite.Execute(kOwnSessions);
    put_znode.emplace(sqlite, "INSERT OR REPLACE INTO znode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    remove_znode.emplace(sqlite, "DELETE FROM znode WHERE path = ?");
    put_session.emplace(sqlite, "INSERT OR REPLACE INTO session VALUES (?, ?, ?)");
    remove_session.emplace(sqlite, "DELETE FROM session WHERE id = ?");
    put_own_session.emplace(sqlite, "INSERT OR REPLACE INTO own_session VALUES (?)");
    remove_own_session.emplace(sqlite, "DELETE FROM own_session WHERE id = ?");
    put_counter.emplace(sqlite, "UPDATE counter SET zxid = ?");
  }

  void Put(const SessionRecord& session) {
    put_session->Bind(0, session.id).BindBytes(1, session.password).Bind(2, session.timeout_ms).Run();
    if (session.is_own) put_own_session->Bind(0, session.id).Run();
  }

  void RemoveSession(std::int64_t id) {
    remove_session->Bind(0, id).Run();
    remove_own_session->Bind(0, id).Run();
  }

  static Sqlite Open(const std::string& path) {
    MakeFile(path);
    return Sqlite(path);
  }

  void Put(const DataTree::Snapshot& znode) {
    std::string acl;
    put_znode->BindText(0, znode.path).BindBytes(1, znode.data);
    const Stat& stat = znode.stat;
    std::int64_t numbers[] = {stat.czxid,   stat.mzxid,    stat.pzxid,           stat.ctime,   stat.mtime,
                              stat.version, stat.aversion, stat.ephemeral_owner, znode.created};
    int index = 2;
    for (std::int64_t number : numbers) put_znode->Bind(index++, number);
    if (znode.acl) {
      JuteWriter writer(acl);
      WriteAcl(writer, znode.acl.get());
      put_znode->BindBytes(index, acl);
    } else {
      put_znode->BindNull(index);
    }
    put_znode->Run();
  }

  FileLock lock;
  Sqlite sqlite;
  std::optional<Statement> put_znode, remove_znode, put_session, remove_session, put_own_session,
      remove_own_session, put_counter;
};

Journal::Journal(std::string path) {
  try {
    database_ = std::make_unique<Database>(path);
  } catch (const Error& error) {
    Verdict verdict = error.verdict() == Verdict::kConflict ? Verdict::kConflict : Verdict::kInvalid;
    throw Error(verdict, fmt::format("the state in {} cannot be used: {}{}", path, error.message(),
                                     ShortageNear(path)));
  }
}

Journal::~Journal() = default;

Journal::Contents Journal::Load() {
  Contents contents;
  Statement sessions(database_->sqlite,
                     "SELECT id, password, timeout_ms, id IN (SELECT id FROM own_session) FROM session");
  while (sessions.Next()) {
    contents.sessions.push_back(
        {sessions.Number(0), sessions.Bytes(1), Narrow(sessions.Number(2)), sessions.Number(3) != 0});
  }
  // In the order of their paths parents come before their children, as the tree needs them.
  Statement znodes(database_->sqlite, "SELECT * FROM znode ORDER BY path");
  while (znodes.Next()) {
    DataTree::Snapshot& znode = contents.znodes.emplace_back();
    znode.path = znodes.Bytes(0);
    znode.data = znodes.Bytes(1);
    Stat& stat = znode.stat;
    stat.czxid = znodes.Number(2);
    stat.mzxid = znodes.Number(3);
    stat.pzxid = znodes.Number(4);
    stat.ctime = znodes.Number(5);
    stat.mtime = znodes.Number(6);
    stat.version = Narrow(znodes.Number(7));
    stat.aversion = Narrow(znodes.Number(8));
    stat.ephemeral_owner = znodes.Number(9);
    znode.created = Narrow(znodes.Number(10));
    if (znodes.IsNull(11)) continue;
    std::string acl = znodes.Bytes(11);
    JuteReader reader(acl);
    znode.acl = std::make_shared<const Acl>(ReadAcl(reader));
  }
  // A number that a client has seen and that is not on disk is not used again: each start has its own.
  std::int64_t starts = (database_->sqlite.Number("SELECT zxid FROM counter") >> 32) + 1;
  contents.zxid = starts << 32;
  // Written at once, so that the next start counts this one even if nothing else is ever written.
  Changes start;
  start.zxid = contents.zxid;
  Write(start);
  return contents;
}

void Journal::Write(const Changes& changes) {
  Sqlite& sqlite = database_->sqlite;
  sqlite.Execute("BEGIN IMMEDIATE");
  try {
    for (const DataTree::Snapshot& znode : changes.stored) database_->Put(znode);
    for (const std::string& path : changes.removed) database_->remove_znode->BindText(0, path).Run();
    for (const SessionRecord& session : changes.opened) database_->Put(session);
    for (std::int64_t id : changes.closed) database_->RemoveSession(id);
    database_->put_counter->Bind(0, changes.zxid).Run();
    sqlite.Execute("COMMIT");
  } catch (const Error&) {
    sqlite3_exec(sqlite.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

std::string ShortageText(const std::string& folder, std::uintmax_t available) {
  constexpr std::uintmax_t kEnough = 10'000'000;
  if (available >= kEnough) return "";
  return fmt::format("; {:.1f} MB are free in {}", static_cast<double>(available) / 1e6, folder);
}

std::string ShortageNear(const std::string& path) {
  std::error_code error;
  std::string folder = std::filesystem::path(path).parent_path();
  std::uintmax_t available = std::filesystem::space(folder, error).available;
  return error ? "" : ShortageText(folder, available);
}

}  // namespace nodepool::zk::server
