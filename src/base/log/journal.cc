#include "base/log/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
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

#include "base/log/logging.h"

namespace nodepool::log {
namespace {

// As syslog counts.
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
    constexpr timeval kPatience{0, 250'000};
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
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
    // One that takes nothing is waited for once, not at every message.
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

  // What is too large for a datagram is in a sealed file, whose descriptor is sent.
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

}  // namespace nodepool::log
