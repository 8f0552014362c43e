#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

// Containers on this host: a process tree of Debian's bubblewrap with an SSH server in it,
// and a folder that says what is known of it. Everything here blocks, so it is called on
// Nodepool's blocking pool; it knows nothing of Nodepool otherwise.
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
  // `state_dir` is made when it is not there.
  explicit Containers(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  // Notes down a container that is to be: from here on it is listed. Returns its id.
  std::string Prepare(const Plan& plan) const;
  // Starts what was prepared.
  void Start(const std::string& id, const Plan& plan) const;
  // Kills its processes and forgets it; one that does not exist is fine.
  void Remove(const std::string& id) const;

  std::optional<Container> Find(const std::string& id) const;
  std::vector<Container> List() const;
  // What its SSH server has said so far.
  std::string Console(const std::string& id) const;

 private:
  std::string FolderOf(const std::string& id) const { return state_dir_ + "/" + id; }
  std::string FreeAddress(const std::string& network) const;

  std::string state_dir_;
};

}  // namespace bubble
