#include "runners/node/runner_nodes.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "async/deadline.h"
#include "base/text.h"
#include "net/ssh/ssh_files.h"
#include "process/foreground.h"

namespace nodepool::runners {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kLongestLine = 8 * 1024;
constexpr std::size_t kLongestComplaint = 300;
constexpr Duration kEndTime = std::chrono::seconds(15);

// Both ends of a pipe; each is closed unless it was taken.
class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0)
      throw Error(Verdict::kFail, std::string("No pipe for a session with a node: ") + std::strerror(errno));
  }
  ~Pipe() {
    for (int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  int TakeReading() { return std::exchange(ends_[0], -1); }
  int TakeWriting() { return std::exchange(ends_[1], -1); }

 private:
  int ends_[2] = {-1, -1};
};

net::LoginOptions LoginOf(const RunnerPlace& place) {
  net::LoginOptions login{.accepts_any_key = true};
  if (!place.key.empty()) login.identity = place.key;
  return login;
}

std::vector<std::string> SshWords(const net::SshFiles& files, const RunnerPlace& place, std::string line) {
  std::vector<std::string> words = files.Words("ssh");
  for (const char* option : {"ControlMaster=no", "ControlPath=none", "ForwardAgent=no", "ForwardX11=no",
                             "ClearAllForwardings=yes", "RequestTTY=no"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), {place.node.id, std::move(line)});
  return words;
}

class SshSession : public NodeSession {
 public:
  SshSession(Loop& loop, const RunnerPlace& place)
      : files_({place.node}, LoginOf(place)), output_(loop.context()), input_(loop.context()) {
    Pipe output;
    Pipe input;
    process::ForegroundCommand command{.argv = SshWords(files_, place, StartLine(place.runner)),
                                       .ignores_interruption = true,
                                       .output = output.writing(),
                                       .input = input.reading()};
    ssh_.emplace(loop, command);
    output_.assign(output.TakeReading());
    input_.assign(input.TakeWriting());
  }

  Task<std::optional<NodeReport>> Next() override;
  Task<> HandOver(std::string configuration) override;
  std::string Complaint() const override { return complaint_; }

 private:
  std::optional<std::string> TakeLine();

  net::SshFiles files_;
  asio::posix::stream_descriptor output_;
  asio::posix::stream_descriptor input_;
  std::optional<process::ForegroundProcess> ssh_;
  std::string pending_;
  std::string complaint_;
};

// A line that is too long ends where it is.
std::optional<std::string> SshSession::TakeLine() {
  std::size_t end = pending_.find('\n');
  if (end == std::string::npos) {
    if (pending_.size() < kLongestLine) return std::nullopt;
    return std::exchange(pending_, "");
  }
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return line;
}

Task<std::optional<NodeReport>> SshSession::Next() {
  std::array<char, 4096> buffer;
  for (;;) {
    while (std::optional<std::string> line = TakeLine()) {
      std::optional<NodeReport> report = ReadReport(*line);
      if (report) co_return report;
      bool is_beat = line->starts_with(kReportMark);
      if (!is_beat && !Trim(*line).empty()) complaint_ = Excerpt(*line, kLongestComplaint);
    }
    boost::system::error_code error;
    std::size_t size = co_await output_.async_read_some(asio::buffer(buffer),
                                                        asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
    if (error) co_return std::nullopt;
    pending_.append(buffer.data(), size);
  }
}

Task<> SshSession::HandOver(std::string configuration) {
  configuration += '\n';
  boost::system::error_code error;
  co_await asio::async_write(input_, asio::buffer(configuration),
                             asio::redirect_error(asio::use_awaitable, error));
  OPENSSL_cleanse(configuration.data(), configuration.size());
  if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
  if (error) throw Error(Verdict::kRetry, "the session with the node is over");
}

Task<> AwaitExit(process::ForegroundProcess& program) { co_await program.Wait(); }

}  // namespace

std::unique_ptr<NodeSession> SshNodes::Open(RunnerPlace place) {
  return std::make_unique<SshSession>(loop_, place);
}

Task<> SshNodes::EndRunner(RunnerPlace place) {
  net::SshFiles files({place.node}, LoginOf(place));
  Pipe output;
  process::ForegroundCommand command{.argv = SshWords(files, place, EndLine(place.runner)),
                                     .ignores_interruption = true,
                                     .output = output.writing()};
  process::ForegroundProcess ssh(loop_, command);
  SteadyTime deadline = loop_.SteadyNow() + kEndTime;
  co_await EndsBy(loop_, deadline, "ending a runner on its node", AwaitExit(ssh));
}

}  // namespace nodepool::runners
