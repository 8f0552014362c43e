// Uploads of a large sparse file through the HTTP client, several at once, to servers in child processes that
// throw it away: throughput, processor time, what was read of the disk, memory of the process and of the
// system's cache, and by how much the loop is late meanwhile, and was before, with nothing to do: that is the
// machine's share. Before them, with
// --checksums, the file's checksums are computed as for a build that has none.

#include <arpa/inet.h>
#include <fcntl.h>
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
#include <ctime>
#include <fstream>

#include "async/task_group.h"
#include "builder/files/local_files.h"
#include "net/http/http_client.h"

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

Task<> Send(net::HttpClient& client, net::HttpCall call) {
  net::HttpReply reply = co_await client.Send(std::move(call));
  if (reply.status != 204) throw std::runtime_error(fmt::format("answer {}", reply.status));
}

Task<> Upload(Loop& loop, net::HttpClient& client, std::vector<net::HttpCall> calls,
              std::vector<double>& late_ms) {
  TaskGroup measuring(loop, log::Logger("bench"));
  measuring.Spawn("measure", MeasureDelay(loop, late_ms));
  TaskGroup uploads(loop, log::Logger("bench"));
  for (net::HttpCall& call : calls) uploads.Spawn("upload", Send(client, std::move(call)));
  co_await uploads.Join();
  co_await measuring.Stop();
}

std::uint64_t NumberIn(const char* path, std::string_view name) {
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::stoull(line.substr(line.find_first_of("0123456789")));
  }
  return 0;
}

// What the process has used until now, in MiB and seconds.
struct Use {
  double seconds = static_cast<double>(::clock()) / CLOCKS_PER_SEC;
  std::uint64_t read_mib = NumberIn("/proc/self/io", "read_bytes") >> 20;
  std::uint64_t cached_mib = NumberIn("/proc/meminfo", "Cached") >> 10;
};

void Report(const std::string& what, std::uint64_t megabytes, const Use& before, SteadyTime begun,
            Loop& loop) {
  Use after;
  double seconds = std::chrono::duration<double>(loop.SteadyNow() - begun).count();
  fmt::print(
      "{}: {:.1f} s, {:.0f} MiB/s, {:.1f} s of a processor; read of the disk {} MiB, in the system's cache "
      "{:+} MiB\n",
      what, seconds, static_cast<double>(megabytes) / seconds, after.seconds - before.seconds,
      after.read_mib - before.read_mib, static_cast<std::int64_t>(after.cached_mib - before.cached_mib));
}

struct Options {
  std::uint64_t megabytes = 2048;
  std::uint64_t data_megabytes = 0;
  int uploads = 1;
  bool wants_checksums = false;
  std::string folder = "/tmp";
};

// A file whose data are spread over it, and no longer in the system's cache.
std::string MakeFile(const Options& options) {
  std::string path = options.folder + "/nodepool-upload-bench-XXXXXX";
  int file = ::mkstemp(path.data());
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(options.megabytes << 20)) != 0)
    throw std::runtime_error("no file");
  std::string data(1 << 20, 'd');
  for (std::uint64_t i = 0; i < options.data_megabytes; ++i) {
    auto place = static_cast<off_t>((i * options.megabytes / options.data_megabytes) << 20);
    if (::pwrite(file, data.data(), data.size(), place) < 0) throw std::runtime_error("no space");
  }
  ::fsync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
  return path;
}

// The URL of a server in a child process.
std::string StartServer(std::uint64_t size) {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::bind(listener, reinterpret_cast<sockaddr*>(&address), length);
  ::listen(listener, 1);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Swallow(listener, size);
  }
  ::close(listener);
  return fmt::format("http://127.0.0.1:{}/file", ntohs(address.sin_port));
}

void Run(const Options& options) {
  std::string path = MakeFile(options);
  std::vector<net::HttpCall> calls;
  for (int i = 0; i < options.uploads; ++i) {
    net::HttpCall& call = calls.emplace_back();
    call.method = "PUT";
    call.url = StartServer(options.megabytes << 20);
    call.upload = net::HttpUpload{path, nullptr};
    call.timeouts.total = std::chrono::hours(1);
  }
  Loop loop;
  BlockingPool pool;
  net::CurlClient client(loop, pool, "bench");
  std::vector<double> idle_late_ms, late_ms;
  RunToEnd(loop, Idle(loop, idle_late_ms));
  if (options.wants_checksums) {
    builder::DirectoryFiles files(pool);
    Use before;
    SteadyTime begun = loop.SteadyNow();
    RunToEnd(loop, files.ReadChecksums(path));
    Report("checksums", options.megabytes, before, begun, loop);
  }
  Use before;
  SteadyTime begun = loop.SteadyNow();
  RunToEnd(loop, Upload(loop, client, std::move(calls), late_ms));
  Report(fmt::format("{} uploads", options.uploads),
         options.megabytes * static_cast<std::uint64_t>(options.uploads), before, begun, loop);
  for (int i = 0; i < options.uploads; ++i) ::wait(nullptr);
  for (const char* suffix : {"", ".md5", ".sha256"}) ::unlink((path + suffix).c_str());
  PrintDelay("idle", std::move(idle_late_ms));
  PrintDelay("uploading", std::move(late_ms));
  fmt::print("resident at most: {} MiB\n", NumberIn("/proc/self/status", "VmHWM") >> 10);
}

}  // namespace
}  // namespace nodepool::bench

int main(int argc, char** argv) {
  CLI::App app("Uploads a sparse file and measures itself");
  nodepool::bench::Options options;
  app.add_option("--megabytes", options.megabytes, "size of the file");
  app.add_option("--data", options.data_megabytes, "MiB of it that are data, the rest are holes");
  app.add_option("--uploads", options.uploads, "how many, at once");
  app.add_option("--folder", options.folder, "for the file");
  app.add_flag("--checksums", options.wants_checksums, "compute its checksums before");
  CLI11_PARSE(app, argc, argv);
  ::signal(SIGPIPE, SIG_IGN);
  nodepool::bench::Run(options);
}
