#include "zk/server/answer.h"

namespace nodepool::zk::server {
namespace {

using protocol::OpCode;

constexpr std::int32_t kErrorResult = -1;
constexpr std::int32_t kStateConnected = 3;

}  // namespace

void WriteReplyHeader(JuteWriter& out, const protocol::ReplyHeader& header) {
  out.Int(header.xid);
  out.Long(header.zxid);
  out.Int(static_cast<std::int32_t>(header.code));
}

void WriteStat(JuteWriter& out, const Stat& stat) {
  out.Long(stat.czxid);
  out.Long(stat.mzxid);
  out.Long(stat.ctime);
  out.Long(stat.mtime);
  out.Int(stat.version);
  out.Int(stat.cversion);
  out.Int(stat.aversion);
  out.Long(stat.ephemeral_owner);
  out.Int(stat.data_length);
  out.Int(stat.num_children);
  out.Long(stat.pzxid);
}

void WriteNames(JuteWriter& out, const std::vector<std::string>& names) {
  out.Int(static_cast<std::int32_t>(names.size()));
  for (const std::string& name : names) out.String(name);
}

void WritePartHead(JuteWriter& out, std::int32_t kind, std::int32_t code) {
  out.Int(kind);
  out.Bool(false);
  out.Int(code);
}

void WritePartsEnd(JuteWriter& out) {
  out.Int(-1);
  out.Bool(true);
  out.Int(-1);
}

void WriteMultiResult(JuteWriter& out, const std::vector<OpCode>& ops, const MultiResult& result) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpResult& part = result.results[i];
    if (!result.ok()) {
      WritePartHead(out, kErrorResult, static_cast<std::int32_t>(part.code));
      out.Int(static_cast<std::int32_t>(part.code));
      continue;
    }
    bool is_creation = !part.path.empty();
    OpCode kind = is_creation && ops[i] != OpCode::kCreate ? OpCode::kCreate2 : ops[i];
    WritePartHead(out, static_cast<std::int32_t>(kind), 0);
    if (is_creation) out.String(part.path);
    if (kind == OpCode::kCreate2 || kind == OpCode::kSetData) WriteStat(out, part.stat);
  }
  WritePartsEnd(out);
}

void AppendEvent(std::string& out, const WatchEvent& event) {
  AppendFrame(out, [&](JuteWriter& writer) {
    WriteReplyHeader(writer, {protocol::kEventXid, event.zxid, Code::kOk});
    writer.Int(static_cast<std::int32_t>(event.type));
    writer.Int(kStateConnected);
    writer.String(event.path);
  });
}

void AppendConnectResponse(std::string& out, const protocol::ConnectResponse& response,
                           bool is_read_only_known) {
  AppendFrame(out, [&](JuteWriter& writer) {
    writer.Int(0);
    writer.Int(response.timeout_ms);
    writer.Long(response.session_id);
    writer.Bytes(response.password);
    if (is_read_only_known) writer.Bool(false);
  });
}

}  // namespace nodepool::zk::server
