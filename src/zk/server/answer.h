#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "zk/types.h"
#include "zk/wire/protocol.h"

// What a server sends, as frames with their length. All append to `out`.
namespace nodepool::zk::server {

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
// The head of a part of a transaction's answer, and its end.
void WritePartHead(JuteWriter& out, std::int32_t kind, std::int32_t code);
void WritePartsEnd(JuteWriter& out);

void AppendEvent(std::string& out, const WatchEvent& event);
// A time-out of 0 tells that the session has expired.
void AppendConnectResponse(std::string& out, const protocol::ConnectResponse& response,
                           bool is_read_only_known);

}  // namespace nodepool::zk::server
