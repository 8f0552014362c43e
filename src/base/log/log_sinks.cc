#include "base/log/log_sinks.h"

#include <fmt/format.h>
#include <netdb.h>
#include <spdlog/details/file_helper.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/log/journal.h"

namespace nodepool::log {

namespace {

namespace fs = std::filesystem;

// A file that is rotated by its rules.
class FileSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit FileSink(LogFile settings) : settings_(std::move(settings)) {
    Open();
    struct stat status {};
    bool is_known = size_ > 0 && ::stat(settings_.path.c_str(), &status) == 0;
    PlanTurn(is_known ? status.st_mtime : std::time(nullptr));
  }

  void Reopen() {
    Close();
    Open();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (!is_open_ || (settings_.is_watched && IsMovedAway())) Reopen();
    if (settings_.turn != LogFile::Turn::kNever && std::time(nullptr) >= turn_at_) TurnByTime();
    std::size_t size = message.payload.size() + 1;
    bool is_full =
        settings_.max_bytes > 0 && size_ > 0 && size_ + size > static_cast<std::size_t>(settings_.max_bytes);
    if (is_full && settings_.backups > 0) TurnBySize();
    spdlog::memory_buf_t line;
    line.append(message.payload.begin(), message.payload.end());
    line.push_back('\n');
    file_.write(line);
    size_ += size;
  }
  void flush_() override {
    if (is_open_) file_.flush();
  }

 private:
  void Close() {
    is_open_ = false;
    file_.close();
  }
  void Open() {
    file_.open(settings_.path);
    is_open_ = true;
    size_ = file_.size();
    struct stat status {};
    if (::stat(settings_.path.c_str(), &status) == 0) inode_ = status.st_ino;
  }

  bool IsMovedAway() const {
    struct stat status {};
    return ::stat(settings_.path.c_str(), &status) != 0 || status.st_ino != inode_;
  }

  // PATH becomes PATH.1, that PATH.2 and so on; the last one is deleted.
  void TurnBySize() {
    Close();
    std::error_code ignored;
    for (int i = settings_.backups - 1; i >= 0; --i) {
      std::string from = i == 0 ? settings_.path : fmt::format("{}.{}", settings_.path, i);
      fs::rename(from, fmt::format("{}.{}", settings_.path, i + 1), ignored);
    }
    Open();
  }

  std::tm PartsOf(std::time_t time) const {
    std::tm parts{};
    settings_.is_utc ? gmtime_r(&time, &parts) : localtime_r(&time, &parts);
    return parts;
  }

  std::time_t Midnight(std::tm day) const {
    day.tm_hour = day.tm_min = day.tm_sec = 0;
    day.tm_isdst = -1;
    return settings_.is_utc ? timegm(&day) : mktime(&day);
  }

  // Plans when the file that was begun at `start` is rotated.
  void PlanTurn(std::time_t start) {
    began_ = start;
    std::tm day = PartsOf(start);
    if (settings_.turn == LogFile::Turn::kSeconds) {
      turn_at_ = start + settings_.interval;
    } else if (settings_.turn == LogFile::Turn::kMidnight) {
      day.tm_mday += static_cast<int>(std::min<std::int64_t>(settings_.interval, 10'000));
      turn_at_ = Midnight(day);
    } else if (settings_.turn == LogFile::Turn::kWeekday) {
      constexpr int kDays = 7;
      int today = (day.tm_wday + kDays - 1) % kDays;  // 0 = Monday
      day.tm_mday += (settings_.weekday - today + kDays) % kDays + 1;
      turn_at_ = Midnight(day);
    }
  }

  void TurnByTime() {
    Close();
    std::tm parts = PartsOf(began_);
    char suffix[64];
    std::size_t size = std::strftime(suffix, sizeof(suffix), settings_.suffix.c_str(), &parts);
    std::error_code ignored;
    fs::rename(settings_.path, settings_.path + "." + std::string(suffix, size), ignored);
    RemoveOldest();
    Open();
    PlanTurn(std::time(nullptr));
  }

  // Removes the oldest of the files named PATH.SUFFIX, whose names sort by time.
  void RemoveOldest() const {
    if (settings_.backups <= 0) return;
    fs::path path(settings_.path);
    std::string prefix = path.filename().string() + ".";
    std::vector<fs::path> former;
    std::error_code error;
    fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      std::string name = it->path().filename().string();
      if (name.starts_with(prefix) && IsSuffix(name.substr(prefix.size()))) former.push_back(it->path());
    }
    std::ranges::sort(former);
    std::size_t kept = static_cast<std::size_t>(settings_.backups);
    for (std::size_t i = 0; i + kept < former.size(); ++i) fs::remove(former[i], error);
  }

  bool IsSuffix(const std::string& text) const {
    std::tm parts{};
    const char* end = strptime(text.c_str(), settings_.suffix.c_str(), &parts);
    return end != nullptr && *end == 0;
  }

  LogFile settings_;
  spdlog::details::file_helper file_;
  bool is_open_ = false;
  std::size_t size_ = 0;
  ino_t inode_ = 0;
  std::time_t began_ = 0;
  std::time_t turn_at_ = 0;
};

// Datagrams; those that the receiver does not accept at once are dropped.
class SyslogSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit SyslogSink(Syslog settings) : settings_(std::move(settings)) {
    if (settings_.port != 0) Resolve();
  }
  ~SyslogSink() override { Close(); }
  SyslogSink(const SyslogSink&) = delete;
  SyslogSink& operator=(const SyslogSink&) = delete;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string text = fmt::format("<{}>", settings_.facility * 8 + Severity(message.level));
    text.append(message.payload.begin(), message.payload.end());
    if (settings_.is_terminated) text += '\0';
    if (socket_ < 0) Connect();
    if (socket_ >= 0 && ::send(socket_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) Close();
  }
  void flush_() override {}

 private:
  static int Severity(spdlog::level::level_enum level) {
    switch (level) {
      case spdlog::level::debug:
        return 7;
      case spdlog::level::info:
        return 6;
      case spdlog::level::warn:
        return 4;
      case spdlog::level::err:
        return 3;
      default:
        return 2;
    }
  }

  void Resolve() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_DGRAM;
    addrinfo* found = nullptr;
    std::string port = std::to_string(settings_.port);
    if (int code = getaddrinfo(settings_.address.c_str(), port.c_str(), &hints, &found); code != 0) {
      throw spdlog::spdlog_ex(fmt::format("{}: {}", settings_.address, gai_strerror(code)));
    }
    std::memcpy(&place_, found->ai_addr, found->ai_addrlen);
    place_size_ = found->ai_addrlen;
    freeaddrinfo(found);
  }

  // The receiver may start later than this process.
  void Connect() {
    if (settings_.port == 0) {
      auto& path = reinterpret_cast<sockaddr_un&>(place_);
      path.sun_family = AF_UNIX;
      if (settings_.address.size() >= sizeof(path.sun_path)) return;
      std::strcpy(path.sun_path, settings_.address.c_str());
      place_size_ = sizeof(sockaddr_un);
    }
    socket_ = ::socket(place_.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 && ::connect(socket_, reinterpret_cast<sockaddr*>(&place_), place_size_) != 0) Close();
  }

  void Close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  Syslog settings_;
  sockaddr_storage place_{};
  socklen_t place_size_ = 0;
  int socket_ = -1;
};

std::shared_ptr<spdlog::sinks::sink> Make(const Handler& handler) {
  switch (handler.kind) {
    case Handler::Kind::kStdout:
      return std::make_shared<spdlog::sinks::stdout_sink_st>();
    case Handler::Kind::kStderr:
      return std::make_shared<spdlog::sinks::stderr_sink_st>();
    case Handler::Kind::kFile:
      return std::make_shared<FileSink>(handler.file);
    case Handler::Kind::kSyslog:
      return std::make_shared<SyslogSink>(handler.syslog);
    case Handler::Kind::kJournal:
      return OpenJournal(handler.journal);
    case Handler::Kind::kNull:
      return std::make_shared<spdlog::sinks::null_sink_st>();
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<spdlog::sinks::sink> OpenSink(const Handler& handler) {
  try {
    std::shared_ptr<spdlog::sinks::sink> sink = Make(handler);
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
    return sink;
  } catch (const spdlog::spdlog_ex& error) {
    throw nodepool::Error(
        Verdict::kInvalid,
        fmt::format("cannot log to {}: {}",
                    handler.kind == Handler::Kind::kFile ? handler.file.path : handler.syslog.address,
                    error.what()));
  }
}

void ReopenFile(spdlog::sinks::sink& sink) {
  // spdlog's sinks have no such operation, and all but files need none.
  if (auto* file = dynamic_cast<FileSink*>(&sink)) file->Reopen();
}

}  // namespace nodepool::log
