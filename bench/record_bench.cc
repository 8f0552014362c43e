// What it takes to read and to write a record.
#include <benchmark/benchmark.h>

#include "model/node.h"
#include "model/node_request.h"

namespace nodepool {
namespace {

// As Zuul has it while it uses the node.
constexpr std::string_view kNode =
    R"({"state": "in-use", "state_time": 1726605930.2134566, "cloud": "c1", "provider": "c1-east", "pool": "main", )"
    R"("type": ["small"], "allocated_to": "200-0000004711", "az": "az1", "region": "east", )"
    R"("public_ipv4": "203.0.113.7", "private_ipv4": "10.0.0.7", "public_ipv6": null, "host_id": "h42", )"
    R"("interface_ip": "203.0.113.7", "connection_port": 22, "ssh_port": 22, )"
    R"("image_id": "/nodepool/images/deb12/builds/4f0e/providers/c1-east/images/0000000001", )"
    R"("launcher": "np01.example.org-PoolWorker.c1-east-main-9d1c", "created_time": 1726605881.0254321, )"
    R"("external_id": "9d3c6f1e-51d2-4f64-a4a2-b0e7a2c7f1b5", "hostname": null, "comment": null, )"
    R"("user_data": {"zuul_system": "0f6c1c5e9d", "project_name": "example.org/project"}, "hold_job": null, )"
    R"("host_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1hkFqgSRRVZHDQ3DvCzRR5pK8o6gTJ2Yxo4R0mS0nH", )"
    R"("ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJ5Oq3m8a1fZ0G7dQw1B"], )"
    R"("username": "zuul", "connection_type": "ssh", "shell_type": null, "hold_expiration": null, )"
    R"("resources": {"cores": 4, "instances": 1, "ram": 8192}, "slot": null, )"
    R"("attributes": {"executor-zone": "east"}, "python_path": "auto", "tenant_name": "demo", )"
    R"("driver_data": null, "requestor": "0f6c1c", "id": "0000000107"})";

constexpr std::string_view kRequest =
    R"({"state": "requested", "state_time": 1726605931.1201, "declined_by": [], )"
    R"("node_types": ["small", "large", "small"], "nodes": [], "reuse": true, "requestor": "0f6c1c5e9d", )"
    R"("requestor_data": {"build_set_uuid": "5b2e9d1c", "tenant_name": "demo", "pipeline_name": "check", )"
    R"("job_uuid": "77d1", "job_name": "unit", "span_info": {"trace_id": 5893310331645813483, )"
    R"("span_id": 1633166666666}}, "provider": null, "relative_priority": 3, "event_id": "5b2e", )"
    R"("created_time": 1726605880.5012, "tenant_name": "demo"})";

template <class Parse>
void Read(benchmark::State& state, Parse parse, std::string_view text) {
  WallTime now = FromSeconds(1'700'000'000);
  for (auto _ : state) {
    auto record = parse(text, now);
    benchmark::DoNotOptimize(record);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}
BENCHMARK_CAPTURE(Read, node, &ParseNode, kNode);
BENCHMARK_CAPTURE(Read, request, &ParseNodeRequest, kRequest);

template <class Parse>
void Write(benchmark::State& state, Parse parse, std::string_view text) {
  auto record = *parse(text, FromSeconds(1'700'000'000));
  for (auto _ : state) {
    std::string written = ToJson(record);
    benchmark::DoNotOptimize(written.data());
  }
}
BENCHMARK_CAPTURE(Write, node, &ParseNode, kNode);
BENCHMARK_CAPTURE(Write, request, &ParseNodeRequest, kRequest);

}  // namespace
}  // namespace nodepool
