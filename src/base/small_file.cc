#include "base/small_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/scope_exit.h"
#include "base/text.h"

namespace nodepool {

std::string ReadSmallFile(const std::string& path, std::size_t limit) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(limit, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof())
    throw Error(Verdict::kInvalid, fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  if (text.empty()) throw Error(Verdict::kInvalid, path + " is empty");
  if (text.size() == limit) throw Error(Verdict::kInvalid, path + " is too large");
  return text;
}

std::string ReadTextFile(const std::string& path) {
  constexpr std::size_t kLimit = 256 * 1024;
  std::string text(Trim(ReadSmallFile(path, kLimit)));
  if (text.empty()) throw Error(Verdict::kInvalid, path + " is empty");
  return text;
}

namespace {

[[noreturn]] void FailToRead(const std::string& path, const char* why) {
  throw Error(Verdict::kFail, fmt::format("{} cannot be read: {}", path, why));
}

}  // namespace

std::string ReadFileEnd(const std::string& path, std::size_t size) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) FailToRead(path, std::strerror(errno));
  ScopeExit close([file] { ::close(file); });
  struct stat status;
  if (::fstat(file, &status) != 0) FailToRead(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) FailToRead(path, "it is no regular file");
  off_t start = std::max<off_t>(0, status.st_size - static_cast<off_t>(size));
  std::string text(static_cast<std::size_t>(status.st_size - start), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    ssize_t count =
        ::pread(file, text.data() + filled, text.size() - filled, start + static_cast<off_t>(filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) FailToRead(path, std::strerror(errno));
    if (count == 0) break;  // it was cut meanwhile
    filled += static_cast<std::size_t>(count);
  }
  text.resize(filled);
  if (start > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

CheckedOutput::CheckedOutput(std::ostream& out) : out_(out), relay_(*out.rdbuf()) { out_.rdbuf(&relay_); }

CheckedOutput::~CheckedOutput() {
  auto state = out_.rdstate();
  out_.rdbuf(&relay_.inner());
  out_.setstate(state);  // a new buffer is taken for a good one
}

int CheckedOutput::Finish(std::string_view program, int status, std::ostream& err) {
  out_.flush();
  bool is_lost = relay_.fault() != 0 && relay_.fault() != EPIPE;
  if (!is_lost) return status;
  err << program << ": the output is incomplete: " << std::strerror(relay_.fault()) << std::endl;
  return status == 0 ? 1 : status;
}

bool CheckedOutput::Relay::Note(bool is_good) {
  if (!is_good && fault_ == 0) fault_ = errno != 0 ? errno : EIO;
  return is_good;
}

CheckedOutput::Relay::int_type CheckedOutput::Relay::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return sync() == 0 ? traits_type::not_eof(c) : c;
  errno = 0;
  int_type written = inner_.sputc(traits_type::to_char_type(c));
  Note(!traits_type::eq_int_type(written, traits_type::eof()));
  return written;
}

std::streamsize CheckedOutput::Relay::xsputn(const char* text, std::streamsize size) {
  errno = 0;
  std::streamsize written = inner_.sputn(text, size);
  Note(written == size);
  return written;
}

int CheckedOutput::Relay::sync() {
  errno = 0;
  return Note(inner_.pubsync() == 0) ? 0 : -1;
}

}  // namespace nodepool
