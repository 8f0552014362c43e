#include "base/checked_output.h"

#include <cerrno>
#include <cstring>

namespace nodepool {

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
