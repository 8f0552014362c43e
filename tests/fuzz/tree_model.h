#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "zk/types.h"

// What a ZooKeeper server has to answer, as simply as it can be said: a map from paths to znodes, which a
// transaction copies. Access lists and watches are left out.
namespace nodepool::zk {

class TreeModel {
 public:
  TreeModel();

  // Deletes its ephemeral znodes.
  void CloseSession(std::int64_t session);
  void DeleteEmptyContainers();

  // All operations or none, as DataTree::Multi. Only the code and the created path of a result are set;
  // kBadArguments stands for any refusal of a malformed path.
  MultiResult Apply(const std::vector<Op>& ops, std::int64_t session);

  bool Has(const std::string& path) const { return znodes_.contains(path); }
  const std::string& DataOf(const std::string& path) const { return znodes_.at(path).data; }
  // Without transaction ids and times.
  Stat StatOf(const std::string& path) const;
  std::vector<std::string> ChildrenOf(const std::string& path) const;  // names, in order
  std::size_t CountBelow(const std::string& path) const;
  // Those whose paths begin with `prefix`.
  std::vector<std::string> EphemeralsOf(std::int64_t session, const std::string& prefix = "/") const;
  std::vector<std::string> Paths() const;

  static bool IsPath(std::string_view path);

 private:
  struct Znode {
    std::string data;
    std::int32_t version = 0;
    std::int32_t created = 0;  // children ever created
    std::int64_t owner = 0;    // 0: it is not ephemeral
    bool is_container = false;
  };

  Code Do(const CreateOp& op, std::int64_t session, std::string& path);
  Code Do(const SetOp& op);
  Code Do(const DeleteOp& op);
  Code Do(const CheckOp& op) const;

  std::map<std::string, Znode> znodes_;
};

}  // namespace nodepool::zk
