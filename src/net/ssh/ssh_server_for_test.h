#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/testing/free_port.h"
#include "base/testing/temporary_folder.h"

extern char** environ;

namespace nodepool::net {

// A real sshd on the loopback address with new host keys; stopped by the destructor. Needs root, as
// sshd does, for its privilege separation directory.
class SshServerForTest {
 public:
  // `key_types` as ssh-keygen names them with their length: "ed25519", "rsa-2048", "ecdsa-256" ...
  // Port 0 selects a free one.
  explicit SshServerForTest(const std::vector<std::string>& key_types, int port = 0)
      : port_(port == 0 ? testing::FreePort() : port) {
    ::mkdir("/run/sshd", 0755);
    std::ofstream config(directory_ / "config");
    config << "ListenAddress 127.0.0.1:" << port_ << "\nPidFile none\nUsePAM no\nMaxStartups 200\n";
    for (const std::string& type : key_types) config << "HostKey " << MakeKey(type) << "\n";
    config.close();
  }
  ~SshServerForTest() { Stop(); }
  SshServerForTest(const SshServerForTest&) = delete;
  SshServerForTest& operator=(const SshServerForTest&) = delete;

  void Start() { process_ = Spawn({"/usr/sbin/sshd", "-D", "-e", "-f", (directory_ / "config").string()}); }
  void Stop() {
    if (process_ <= 0) return;
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

  int port() const { return port_; }
  // "<type> <base64>" of the key of that type.
  const std::string& public_key(const std::string& type) const { return public_keys_.at(type); }

 private:
  std::string MakeKey(const std::string& type) {
    std::string file = (directory_ / type).string();
    auto dash = type.find('-');
    std::vector<std::string> command = {"/usr/bin/ssh-keygen", "-q", "-N", "", "-f", file, "-t",
                                        type.substr(0, dash)};
    if (dash != std::string::npos) command.insert(command.end(), {"-b", type.substr(dash + 1)});
    int status = 0;
    ::waitpid(Spawn(command), &status, 0);
    if (status != 0) throw std::runtime_error("ssh-keygen failed");
    std::ifstream published(file + ".pub");
    std::string kind, base64;
    published >> kind >> base64;
    public_keys_[type] = kind + " " + base64;
    return file;
  }

  static pid_t Spawn(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int descriptor : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0);
    }
    pid_t process = 0;
    int error = posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error(command[0] + " cannot be started");
    return process;
  }

  int port_;
  testing::TemporaryFolder temporary_;
  std::filesystem::path directory_ = temporary_.path();
  std::map<std::string, std::string> public_keys_;
  pid_t process_ = 0;
};

}  // namespace nodepool::net
