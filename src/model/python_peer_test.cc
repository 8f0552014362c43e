#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "base/random.h"
#include "model/json.h"
#include "model/node.h"
#include "model/node_request.h"

namespace nodepool {
namespace {

// Python as the other reader and writer of our records: every line of our output
// must come back unchanged from json.dumps(json.loads(line)).
class PythonPeer : public ::testing::Test {
 protected:
  static std::string Run(const std::string& script, const std::string& input) {
    std::string stem = ::testing::TempDir() + "/records_" + SystemRandom().UuidHex();
    std::ofstream(stem + ".py") << script;
    std::ofstream(stem + ".in") << input;
    std::string command = "/usr/bin/python3 " + stem + ".py < " + stem + ".in > " + stem + ".out";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream out(stem + ".out");
    std::string result((std::istreambuf_iterator<char>(out)), std::istreambuf_iterator<char>());
    for (const char* suffix : {".py", ".in", ".out"}) std::remove((stem + suffix).c_str());
    return result;
  }
};

TEST_F(PythonPeer, ReadsOurRecordsAndWritesTheSameBytes) {
  std::string lines;
  SeededRandom random(3);
  for (int i = 0; i < 200; ++i) {
    Node node;
    node.SetState(NodeState::kReady, FromSeconds(random.Between(1.6e9, 1.8e9)));
    node.created_time = FromSeconds(static_cast<double>(random.Below(2'000'000'000)));
    node.comment = "caf\xc3\xa9 \xf0\x9f\x98\x80 \x7f \x1f </script> \\";
    node.resources = Resources{{"cores", 4}, {"ram", 1e9}, {"share", random.Between(0, 1e-7)}};
    node.user_data = random.Between(-1, 1) * 1e20;
    node.driver_data = random.Next();
    node.unknown["x"] = -static_cast<std::int64_t>(random.Below(1ull << 62));
    lines += ToJson(node) + "\n";
    NodeRequest request;
    request.SetState(RequestState::kPending, FromSeconds(random.Between(1.6e9, 1.8e9)));
    request.node_types.emplace_back(
        "l\xc3\xa4"
        "bel");
    lines += ToJson(request) + "\n";
  }
  EXPECT_EQ(Run("import json, sys\nfor line in sys.stdin: print(json.dumps(json.loads(line)))\n", lines),
            lines);
}

TEST_F(PythonPeer, WritesRecordsThatWeReadBackToTheByte) {
  std::string written = Run(
      "import json, random\n"
      "random.seed(5)\n"
      "for i in range(200):\n"
      "  print(json.dumps({'state': 'pending', 'state_time': 1.7e9 + random.random(), 'declined_by': [],\n"
      "    'node_types': ['a'], 'nodes': [], 'reuse': i % 2 == 0, 'requestor': "
      "'r\\u00e9\\U0001f600\\x7f\"',\n"
      "    'requestor_data': [random.uniform(-1e300, 1e300), 10.0 ** random.randint(-20, 20), 2**63 + i, "
      "-i],\n"
      "    'provider': None, 'relative_priority': i, 'event_id': None, 'created_time': 1e9 + random.random() "
      "* 1e9,\n"
      "    'tenant_name': None}))\n",
      "");
  int count = 0;
  std::size_t begin = 0;
  for (std::size_t end; (end = written.find('\n', begin)) != std::string::npos; begin = end + 1, ++count) {
    std::string line = written.substr(begin, end - begin);
    Expected<NodeRequest> request = ParseNodeRequest(line, WallTime());
    ASSERT_TRUE(request) << line << request.error().message();
    EXPECT_EQ(ToJson(*request), line);
  }
  EXPECT_EQ(count, 200);
}

}  // namespace
}  // namespace nodepool
