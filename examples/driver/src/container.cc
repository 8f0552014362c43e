#include "container.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace bubble {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kTimeout{10};
constexpr std::chrono::milliseconds kPause{20};
constexpr const char* kRecord = "record";  // lines "key value"

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Write(const std::string& path, const std::string& text) {
  std::string part = path + ".part";
  std::ofstream file(part);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(part + " cannot be written");
  fs::rename(part, path);
}

// The last lines of a console, for an error's message.
std::string EndOf(const std::string& console) {
  constexpr std::size_t kMost = 400;
  std::string end = console.size() > kMost ? "..." + console.substr(console.size() - kMost) : console;
  while (!end.empty() && end.back() == '\n') end.pop_back();
  return end.empty() ? "its console is empty" : end;
}

// Rejects ids that would be a path outside of the folder.
bool IsId(const std::string& id) { return id.starts_with("bubble-") && id.find('/') == std::string::npos; }

// A lock on a file, exclusive among all processes.
class Exclusive {
 public:
  explicit Exclusive(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0 || flock(file_, LOCK_EX) != 0) throw std::runtime_error(path + " cannot be locked");
  }
  ~Exclusive() { close(file_); }

 private:
  int file_;
};

// Runs a program to its end.
void Run(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  int error = posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::runtime_error(words[0] + " cannot be run");
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error(words[0] + " failed: " + EndOf(Read(log)));
}

// The process whose end ends all of the container's processes; 0 if there is none. Its command line names the
// folder, so that a process id that was reused is detected.
pid_t ProcessOf(const std::string& folder) {
  pid_t pid = std::atoi(Read(folder + "/pid").c_str());
  if (pid <= 1) return 0;
  bool is_it = Read("/proc/" + std::to_string(pid) + "/cmdline").find(folder) != std::string::npos;
  return is_it ? pid : 0;
}

// Throws if the process ends at once, or does not start.
void WaitForStart(const std::string& folder, const std::string& log) {
  auto end = std::chrono::steady_clock::now() + kTimeout;
  while (true) {
    bool has_begun = !Read(folder + "/pid").empty();
    if (ProcessOf(folder) != 0) return;
    if (has_begun || std::chrono::steady_clock::now() > end)
      throw std::runtime_error("the container did not start: " + EndOf(Read(log)));
    std::this_thread::sleep_for(kPause);
  }
}

Container Parse(const std::string& id, const std::string& text) {
  Container container;
  container.id = id;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t space = line.find(' ');
    std::string key = line.substr(0, space), value = space == std::string::npos ? "" : line.substr(space + 1);
    if (key == "name") {
      container.name = value;
    } else if (key == "address") {
      container.address = value;
    } else if (key == "ram") {
      container.ram = std::atof(value.c_str());
    } else {
      container.metadata[key] = value;
    }
  }
  return container;
}

std::string Settings(const Container& container, int port) {
  return "ListenAddress " + container.address + ":" + std::to_string(port) +
         "\nHostKey /run/bubble/host_key\nAuthorizedKeysFile /run/bubble/authorized_keys\nPidFile none\n"
         "StrictModes no\nUsePAM no\nPasswordAuthentication no\n";
}

}  // namespace

std::string Containers::FreeAddress(const std::string& network) const {
  std::set<std::string> taken;
  for (const Container& container : List()) taken.insert(container.address);
  for (int i = 1; i < 65535; ++i) {
    std::string address = network + "." + std::to_string(i / 256) + "." + std::to_string(i % 256);
    if (!taken.contains(address)) return address;
  }
  throw std::runtime_error("every address is taken");
}

std::string Containers::Prepare(const Plan& plan) const {
  fs::create_directories(state_dir_);
  Exclusive others_wait(state_dir_ + "/.lock");  // two containers must not get the same address
  std::string text = "name " + plan.name + "\naddress " + FreeAddress(plan.network) + "\nram " +
                     std::to_string(plan.ram) + "\n";
  for (const auto& [key, value] : plan.metadata) text += key + " " + value + "\n";
  std::string folder = FolderOf("bubble-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error(folder + " cannot be made");
  Write(folder + "/" + kRecord, text);
  return fs::path(folder).filename();
}

void Containers::Start(const std::string& id, const Plan& plan) const {
  std::string folder = FolderOf(id), log = folder + "/console";
  Container container = Parse(id, Read(folder + "/" + kRecord));
  Run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", plan.name, "-f", folder + "/host_key"}, log);
  Write(folder + "/sshd_config", Settings(container, plan.port));
  Write(folder + "/authorized_keys", plan.authorized_key + "\n");
  Write(folder + "/passwd", "zuul:x:1000:1000::/tmp:/bin/sh\n");
  // `setsid --fork` makes the container outlive this program, as a cloud's machine does. The shell stays its
  // parent: a program that another one replaces has no command line for a moment, and would look as if it had
  // ended.
  Run({"setsid",
       "--fork",
       "sh",
       "-c",
       "echo $$ > \"$0/pid\"; \"$@\"; exit",
       folder,
       "bwrap",
       "--ro-bind",
       plan.root,
       "/",
       "--tmpfs",
       "/tmp",
       "--tmpfs",
       "/run",
       "--ro-bind",
       folder,
       "/run/bubble",
       "--ro-bind",
       folder + "/passwd",
       "/etc/passwd",
       "--proc",
       "/proc",
       "--dev",
       "/dev",
       "--unshare-user",
       "--uid",
       "1000",
       "--gid",
       "1000",
       "--unshare-pid",
       "--unshare-ipc",
       "--unshare-uts",
       "--hostname",
       plan.name,
       "/usr/sbin/sshd",
       "-D",
       "-e",
       "-f",
       "/run/bubble/sshd_config"},
      log);
  WaitForStart(folder, log);
}

void Containers::Remove(const std::string& id) const {
  if (!IsId(id)) return;
  std::string folder = FolderOf(id);
  auto end = std::chrono::steady_clock::now() + kTimeout;
  while (pid_t pid = ProcessOf(folder)) {
    kill(-pid, SIGKILL);  // with its process group, including the first process inside
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("the container does not end");
    std::this_thread::sleep_for(kPause);
  }
  fs::remove_all(folder);
}

std::optional<Container> Containers::Find(const std::string& id) const {
  if (!IsId(id)) return std::nullopt;
  std::string record = Read(FolderOf(id) + "/" + kRecord);
  if (record.empty()) return std::nullopt;
  return Parse(id, record);
}

std::vector<Container> Containers::List() const {
  std::vector<Container> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(state_dir_, error)) {
    std::optional<Container> container = Find(entry.path().filename());
    if (container) found.push_back(std::move(*container));
  }
  return found;
}

std::string Containers::Console(const std::string& id) const {
  return IsId(id) ? Read(FolderOf(id) + "/console") : "";
}

}  // namespace bubble
