#include "bench/daemon_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace nodepool::bench {
namespace {

std::string ReadAll(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

DaemonProcess::DaemonProcess(std::vector<std::string> words, const std::string& log) : log_(log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int file = open(log_.c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

DaemonProcess::~DaemonProcess() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

void DaemonProcess::AssertRunning() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) != pid_) return;
  pid_ = 0;
  std::string log = ReadAll(log_);
  throw std::runtime_error("the program ended: " +
                           log.substr(log.size() - std::min<std::size_t>(log.size(), 4000)));
}

CpuTime DaemonProcess::Cpu() const {
  std::string text = ReadAll(fmt::format("/proc/{}/stat", pid_));
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::vector<std::string> values{std::istream_iterator<std::string>(fields), {}};
  // Fields 14 and 15 of proc(5), counted after the command's closing bracket.
  auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return {std::stod(values.at(11)) / ticks, std::stod(values.at(12)) / ticks};
}

double DaemonProcess::Status(const std::string& key) const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(key.size())) / 1024;
  }
  return 0;
}

double DaemonProcess::PeakMegabytes() const { return Status("VmHWM:"); }

double DaemonProcess::ResidentMegabytes() const { return Status("VmRSS:"); }

}  // namespace nodepool::bench
