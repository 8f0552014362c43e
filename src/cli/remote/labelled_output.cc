#include "cli/remote/labelled_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace nodepool::cli {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;

}  // namespace

LabelledOutput::LabelledOutput(Loop& loop, std::string label, std::ostream& out)
    : label_(std::move(label)), out_(out), read_(loop.context()) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(Verdict::kFail, std::string("No pipe: ") + std::strerror(errno));
  read_.assign(ends[0]);
  writing_end_ = ends[1];
}

LabelledOutput::~LabelledOutput() { CloseWritingEnd(); }

void LabelledOutput::CloseWritingEnd() {
  if (writing_end_ >= 0) ::close(std::exchange(writing_end_, -1));
}

Task<> LabelledOutput::Follow() {
  std::array<char, 16 * 1024> buffer;
  std::string pending;
  while (true) {
    boost::system::error_code error;
    std::size_t size = co_await read_.async_read_some(
        boost::asio::buffer(buffer), boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (error == boost::asio::error::operation_aborted) throw boost::system::system_error(error);
    if (error) break;
    pending.append(buffer.data(), size);
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Print(std::string_view(pending).substr(begin, end - begin));
    }
    pending.erase(0, begin);
    if (pending.size() > kLongestLine) Print(std::exchange(pending, ""));
  }
  if (!pending.empty()) Print(pending);
}

void LabelledOutput::Print(std::string_view line) { out_ << label_ << line << std::endl; }

}  // namespace nodepool::cli
