#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace nodepool::bench {

// Processor time that a process has used, in seconds.
struct CpuTime {
  double user = 0;
  double system = 0;

  double total() const { return user + system; }
  CpuTime operator-(const CpuTime& before) const { return {user - before.user, system - before.system}; }
};

// A program that is measured: a child that dies with the benchmark, with its output in a file.
class DaemonProcess {
 public:
  DaemonProcess(std::vector<std::string> words, const std::string& log);
  ~DaemonProcess();  // SIGTERM, and waits
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Throws std::runtime_error with the end of its log if it has ended.
  void AssertRunning();
  CpuTime Cpu() const;  // of all its threads, in ticks of the kernel's clock
  double PeakMegabytes() const;
  double ResidentMegabytes() const;

 private:
  double Status(const std::string& key) const;

  std::string log_;
  pid_t pid_ = 0;
};

}  // namespace nodepool::bench
