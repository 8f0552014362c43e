// An upload of a large sparse file through the HTTP client to a server in a child
// process that throws it away: throughput, memory of the process, and by how much the
// loop is late meanwhile, and was before, with nothing to do: that is the machine's share.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>

#include "async/task_group.h"
#include "net/http/curl_client.h"

namespace nodepool::bench {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(2);

// Takes one request with a body of `size` bytes and answers 204.
void Swallow(int listener, std::uint64_t size) {
  int peer = ::accept(listener, nullptr, nullptr);
  static char buffer[1 << 20];
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos) {
    ssize_t got = ::read(peer, buffer, sizeof buffer);
    if (got <= 0) _exit(1);
    head.append(buffer, static_cast<std::size_t>(got));
  }
  std::uint64_t taken = head.size() - head.find("\r\n\r\n") - 4;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  if (head.find("Expect:") != std::string::npos && ::write(peer, kContinue.data(), kContinue.size()) < 0)
    _exit(1);
  while (taken < size) {
    ssize_t got = ::read(peer, buffer, sizeof buffer);
    if (got <= 0) _exit(1);
    taken += static_cast<std::uint64_t>(got);
  }
  constexpr std::string_view kAnswer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
  if (::write(peer, kAnswer.data(), kAnswer.size()) < 0) _exit(1);
  _exit(0);
}

Task<> MeasureDelay(Loop& loop, std::vector<double>& late_ms) {
  while (true) {
    SteadyTime due = loop.SteadyNow() + kTick;
    co_await loop.SleepUntil(due);
    late_ms.push_back(std::chrono::duration<double, std::milli>(loop.SteadyNow() - due).count());
  }
}

Task<> Idle(Loop& loop, std::vector<double>& late_ms) {
  TaskGroup tasks(loop, log::Logger("bench"));
  tasks.Spawn("measure", MeasureDelay(loop, late_ms));
  co_await loop.SleepFor(std::chrono::seconds(2));
  co_await tasks.Stop();
}

void PrintDelay(const char* when, std::vector<double> late_ms) {
  std::ranges::sort(late_ms);
  fmt::print("{}: loop late by: median {:.2f} ms, p99 {:.2f} ms, most {:.2f} ms ({} looks)\n", when,
             late_ms[late_ms.size() / 2], late_ms[late_ms.size() * 99 / 100], late_ms.back(), late_ms.size());
}

Task<> Upload(Loop& loop, net::HttpClient& client, net::HttpCall call, std::vector<double>& late_ms) {
  TaskGroup tasks(loop, log::Logger("bench"));
  tasks.Spawn("measure", MeasureDelay(loop, late_ms));
  net::HttpReply reply = co_await client.Send(std::move(call));
  fmt::print("answer {}\n", reply.status);
  co_await tasks.Stop();
}

// VmHWM: the most that was resident at a time.
std::string PeakMemory() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM")) return line;
  }
  return "";
}

void Run(std::uint64_t megabytes) {
  std::uint64_t size = megabytes << 20;
  char path[] = "/tmp/nodepool-upload-bench-XXXXXX";
  int file = ::mkstemp(path);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) throw std::runtime_error("no file");
  ::close(file);
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::bind(listener, reinterpret_cast<sockaddr*>(&address), length);
  ::listen(listener, 1);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Swallow(listener, size);
  }
  Loop loop;
  BlockingPool pool;
  net::CurlClient client(loop, pool, "bench");
  net::HttpCall call;
  call.method = "PUT";
  call.url = fmt::format("http://127.0.0.1:{}/file", ntohs(address.sin_port));
  call.upload = net::HttpUpload{path, nullptr};
  call.timeouts.total = std::chrono::hours(1);
  std::vector<double> idle_late_ms;
  RunToEnd(loop, Idle(loop, idle_late_ms));
  std::vector<double> late_ms;
  SteadyTime begun = loop.SteadyNow();
  RunToEnd(loop, Upload(loop, client, std::move(call), late_ms));
  double seconds = std::chrono::duration<double>(loop.SteadyNow() - begun).count();
  ::waitpid(child, nullptr, 0);
  ::unlink(path);
  fmt::print("{} MiB in {:.2f} s: {:.0f} MiB/s\n", megabytes, seconds,
             static_cast<double>(megabytes) / seconds);
  PrintDelay("idle", std::move(idle_late_ms));
  PrintDelay("uploading", std::move(late_ms));
  fmt::print("{}\n", PeakMemory());
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  CLI::App app("Uploads a sparse file and measures itself");
  std::uint64_t megabytes = 2048;
  app.add_option("--megabytes", megabytes, "size of the file");
  CLI11_PARSE(app, argc, argv);
  ::signal(SIGPIPE, SIG_IGN);
  nodepool::bench::Run(megabytes);
}
