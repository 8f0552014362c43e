#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "zk/wire/protocol.h"
#include "zk/znode.h"

namespace nodepool::zk::server {

// Clients' requests, read from bytes that are not trusted.

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

// The answers and events of a server, as frames with their length. All functions append to `out`.

// Appends a frame whose content `write_body(JuteWriter&)` makes.
template <class WriteBody>
void AppendFrame(std::string& out, WriteBody write_body) {
  std::size_t start = out.size();
  JuteWriter writer(out);
  writer.Int(0);
  write_body(writer);
  writer.PatchInt(start, static_cast<std::int32_t>(out.size() - start - sizeof(std::int32_t)));
}

void WriteReplyHeader(JuteWriter& out, const protocol::ReplyHeader& header);
void WriteStat(JuteWriter& out, const Stat& stat);
void WriteNames(JuteWriter& out, const std::vector<std::string>& names);
// `ops` are the op codes that the client sent, one per result.
void WriteMultiResult(JuteWriter& out, const std::vector<protocol::OpCode>& ops, const MultiResult& result);
// The head of one part of a transaction's answer, also of its end.
void WritePartHead(JuteWriter& out, std::int32_t kind, std::int32_t code);
void WritePartsEnd(JuteWriter& out);

void AppendEvent(std::string& out, const WatchEvent& event);
// A time-out of 0 says that the session has expired.
void AppendConnectResponse(std::string& out, const protocol::ConnectResponse& response,
                           bool is_read_only_known);

}  // namespace nodepool::zk::server
