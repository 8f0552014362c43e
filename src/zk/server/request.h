#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zk/tree/acl.h"
#include "zk/types.h"
#include "zk/wire/jute.h"
#include "zk/wire/protocol.h"

// Clients' requests, read from bytes that are not trusted.
namespace nodepool::zk::server {

struct CreateRequest {
  CreateOp op;  // without its access list
  Acl acl;
};

// For exists, get, get children, and other operations that name one path.
struct PathRequest {
  std::string path;
  bool watch = false;
};

struct SetAclRequest {
  std::string path;
  Acl acl;
  std::int32_t version = -1;
};

struct AddWatchRequest {
  std::string path;
  std::int32_t mode = 0;
};

// The watches of one kind at a path: 1 children, 2 data, 3 any.
struct WatchesRequest {
  std::string path;
  std::int32_t kind = 0;
};

struct RestoreWatchesRequest {
  std::int64_t seen_zxid = 0;
  protocol::WatchPaths paths;
};

struct AuthRequest {
  std::string scheme;
  std::string credentials;  // a secret: never logged
};

struct MultiRequest {
  struct Part {
    protocol::OpCode op;
    std::variant<CreateRequest, SetOp, DeleteOp, CheckOp> body;
  };
  std::vector<Part> parts;
};

struct MultiReadRequest {
  struct Part {
    protocol::OpCode op;  // kGetData or kGetChildren
    std::string path;
  };
  std::vector<Part> parts;
};

struct Request {
  std::int32_t xid = 0;
  protocol::OpCode op{};  // may be a number that has no name
  std::variant<std::monostate, CreateRequest, DeleteOp, PathRequest, SetOp, SetAclRequest, AddWatchRequest,
               WatchesRequest, RestoreWatchesRequest, AuthRequest, MultiRequest, MultiReadRequest>
      body;  // monostate: the operation has none, or is not known
};

// The path of a request for a znode's data or children; nullopt: it is another one. Error(kFail): malformed.
std::optional<std::string_view> PathThatIsRead(std::string_view frame);

// The frame without its length. Throws Error(kFail) for malformed bytes.
Request ReadRequest(std::string_view frame);

// The operation of such a frame; 0 for one that is malformed.
protocol::OpCode OperationOf(std::string_view frame);

// The first frame of a connection. Throws the same.
struct ConnectRequestFrame {
  protocol::ConnectRequest request;
  bool is_read_only_known = true;  // clients before 3.4 do not know the answer's last field
};
ConnectRequestFrame ReadConnectRequest(std::string_view frame);

// An access list, as it is in records and on disk.
void WriteAcl(JuteWriter& out, const Acl* acl);  // null: open to everybody
Acl ReadAcl(JuteReader& in);

}  // namespace nodepool::zk::server
