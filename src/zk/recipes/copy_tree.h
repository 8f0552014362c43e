#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zk/client.h"

// Taking a part of a tree from one ZooKeeper to another. The copy has the same paths, data and
// sequence numbers to come; versions and times begin anew, and everybody may do everything with
// it. Znodes that end with a session stay behind.
namespace nodepool::zk {

struct TreeContent {
  struct Znode {
    std::string data;
    std::int64_t created = 0;   // children ever created: the next sequence number
    std::int64_t children = 0;  // of them those that are part of the content
    bool operator==(const Znode&) const = default;
  };
  std::string root;
  std::map<std::string, Znode> znodes;  // by path, so a parent comes before its children
  std::vector<std::string> ephemerals;  // paths of what stays behind
  std::size_t bytes = 0;                // of paths and data

  // How many children have to be created and deleted in the copy to bring its sequence
  // numbers up to these.
  std::int64_t missing_numbers() const;
};

// What stands at `root` and below. "/" means everything but itself and what the server keeps
// under /zookeeper. Empty when there is nothing. Error(kQuota) beyond `max_bytes`. Changes made
// meanwhile may be seen or not.
Task<TreeContent> ReadTree(Client& client, std::string root, std::size_t max_bytes);

// Makes what ReadTree found, where nothing of it exists. ZooKeeper lets nobody set a sequence
// number, so children are created and deleted, a thousand in one transaction, until it is
// reached. When it fails, a part of the copy is left. Error(kConflict): something was there.
Task<> WriteTree(Client& client, const TreeContent& content);

// Deletes what ReadTree found, ephemeral znodes, too. Error(kConflict): somebody creates more.
Task<> DeleteTree(Client& client, const TreeContent& content);

// One path at which the copy is not what it should be, and why; empty when there is none.
std::string FirstDifference(const TreeContent& original, const TreeContent& copy);

}  // namespace nodepool::zk
