// The ZooKeeper protocol's records: how long writing a request and reading an
// answer take, without sockets.
#include <benchmark/benchmark.h>

#include "zk/wire/protocol.h"

namespace nodepool::zk::protocol {
namespace {

const std::string kRecord(500, 'x');
constexpr std::string_view kPath = "/nodepool/nodes/0000012345";

std::string StatBytes() { return std::string(68, '\0'); }

void WriteCreateRequest(benchmark::State& state) {
  std::string frame;
  for (auto _ : state) {
    frame.clear();
    JuteWriter out(frame);
    WriteHeader(out, 1, OpCode::kCreate2);
    WriteCreate(out, {"/chroot", kPath}, kRecord, CreateMode::kPersistent);
    benchmark::DoNotOptimize(frame.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(WriteCreateRequest);

void ReadNodeAnswer(benchmark::State& state) {
  std::string body;
  JuteWriter(body).Bytes(kRecord);
  body += StatBytes();
  for (auto _ : state) {
    JuteReader in(body);
    NodeData node = ReadNodeData(in);
    benchmark::DoNotOptimize(node);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ReadNodeAnswer);

void ReadChildrenAnswer(benchmark::State& state) {
  std::string body;
  JuteWriter out(body);
  out.Int(static_cast<std::int32_t>(state.range(0)));
  for (int i = 0; i < state.range(0); ++i) out.String("0000012345");
  body += StatBytes();
  for (auto _ : state) {
    JuteReader in(body);
    Children children = ReadChildren(in);
    benchmark::DoNotOptimize(children);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ReadChildrenAnswer)->Arg(10)->Arg(10'000);

void ReadWatchEvent(benchmark::State& state) {
  std::string body;
  JuteWriter out(body);
  out.Int(3);
  out.Int(3);
  out.String(kPath);
  for (auto _ : state) {
    JuteReader in(body);
    WatchEvent event = ReadEvent(in);
    benchmark::DoNotOptimize(event);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ReadWatchEvent);

}  // namespace
}  // namespace nodepool::zk::protocol
