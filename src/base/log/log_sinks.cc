#include "base/log/log_sinks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <spdlog/details/file_helper.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/log/logging.h"

namespace nodepool::log {

namespace {

// In syslog's numbers.
int Priority(Level level) {
  switch (level) {
    case Level::kDebug:
      return 7;
    case Level::kInfo:
      return 6;
    case Level::kWarning:
      return 4;
    case Level::kError:
      return 3;
    case Level::kCritical:
      return 2;
  }
  return 2;
}

void AddField(std::string& entry, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  entry += key;
  if (value.find('\n') == std::string_view::npos) {
    entry += '=';
  } else {
    entry += '\n';
    for (std::uint64_t size = value.size(), i = 0; i < sizeof(size); ++i) {
      entry += static_cast<char>(size >> (8 * i) & 0xff);
    }
  }
  entry += value;
  entry += '\n';
}

class JournalSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit JournalSink(const Journal& settings) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    place_.sun_family = AF_UNIX;
    settings.address.copy(place_.sun_path, sizeof(place_.sun_path) - 1);
    constexpr int kBuffer = 8 << 20;
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer));
    constexpr timeval kSendTimeout{0, 250'000};
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout));
  }
  ~JournalSink() override { ::close(socket_); }
  JournalSink(const JournalSink&) = delete;
  JournalSink& operator=(const JournalSink&) = delete;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    iovec whole{const_cast<char*>(message.payload.data()), message.payload.size()};
    msghdr header = Header();
    header.msg_iov = &whole;
    header.msg_iovlen = 1;
    bool is_sent = Send(header);
    if (!is_sent && (errno == EMSGSIZE || errno == ENOBUFS)) is_sent = SendAsFile(message.payload);
    // A receiver that does not read is waited for once, not for every message.
    is_stuck_ = !is_sent;
  }
  void flush_() override {}

 private:
  msghdr Header() {
    msghdr header{};
    header.msg_name = &place_;
    header.msg_namelen = sizeof(place_);
    return header;
  }

  bool Send(const msghdr& header) const {
    return ::sendmsg(socket_, &header, MSG_NOSIGNAL | (is_stuck_ ? MSG_DONTWAIT : 0)) >= 0;
  }

  // An entry that is too large for a datagram is sent as the descriptor of a sealed file.
  bool SendAsFile(spdlog::string_view_t entry) {
    int file = ::memfd_create("journal-entry", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) return false;
    std::string_view rest(entry.data(), entry.size());
    while (!rest.empty()) {
      ssize_t size = ::write(file, rest.data(), rest.size());
      if (size < 0) break;
      rest.remove_prefix(static_cast<std::size_t>(size));
    }
    ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header = Header();
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &file, sizeof(int));
    bool is_sent = rest.empty() && Send(header);
    ::close(file);
    return is_sent;
  }

  int socket_;
  sockaddr_un place_{};
  bool is_stuck_ = false;
};

}  // namespace

std::string JournalEntry(const Record& record, std::string_view message, std::string_view identifier) {
  std::string entry = fmt::format("PRIORITY={}\n", Priority(record.level));
  AddField(entry, "MESSAGE", message);
  AddField(entry, "SYSLOG_IDENTIFIER", identifier);
  AddField(entry, "LOGGER", record.logger);
  AddField(entry, "NODEPOOL_EVENT", record.ids.event);
  AddField(entry, "NODEPOOL_REQUEST", record.ids.request);
  AddField(entry, "NODEPOOL_NODE", record.ids.node);
  return entry;
}

std::shared_ptr<spdlog::sinks::sink> OpenJournal(const Journal& settings) {
  return std::make_shared<JournalSink>(settings);
}

bool IsJournalStream(const char* stream, int descriptor) {
  struct stat status {};
  if (stream == nullptr || ::fstat(descriptor, &status) != 0) return false;
  return stream == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

bool IsJournal(int descriptor) { return IsJournalStream(std::getenv("JOURNAL_STREAM"), descriptor); }

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
