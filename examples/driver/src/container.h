#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

// Containers on this host: a process tree of Debian's bubblewrap with an SSH server in it, and a folder with
// its record. Everything here blocks, so it is called on Nodepool's blocking pool; otherwise it does not
// depend on Nodepool.
namespace bubble {

struct Plan {
  std::string name;  // host name
  std::string root;
  std::string network;
  int port = 0;
  double ram = 0;
  std::string authorized_key;
  std::map<std::string, std::string> metadata;
};

struct Container {
  std::string id;
  std::string name;
  std::string address;
  double ram = 0;
  std::map<std::string, std::string> metadata;
};

class Containers {
 public:
  // Creates `state_dir` if it does not exist.
  explicit Containers(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  // Records a container that is about to be started: from now on it is listed. Returns its id.
  std::string Prepare(const Plan& plan) const;
  // Starts a container that was prepared.
  void Start(const std::string& id, const Plan& plan) const;
  // Kills its processes and removes its record; succeeds if it does not exist.
  void Remove(const std::string& id) const;

  std::optional<Container> Find(const std::string& id) const;
  std::vector<Container> List() const;
  // The output of its SSH server so far.
  std::string Console(const std::string& id) const;

 private:
  std::string FolderOf(const std::string& id) const { return state_dir_ + "/" + id; }
  std::string FreeAddress(const std::string& network) const;

  std::string state_dir_;
};

}  // namespace bubble
