#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "base/ids.h"
#include "base/text.h"
#include "model/json_scanner.h"
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
    node.foreign.Add("x", -static_cast<std::int64_t>(random.Below(1ull << 62)));
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

// Any content that other programs put into a record reads the same in Python after our rewrite.
TEST_F(PythonPeer, FindsUnusualRecordsUnchanged) {
  std::string written = Run(R"(
import json, random
random.seed(7)
LEAVES = [None, True, 0, -0.0, 1.5, -7, 2**127 + 1, -2**64, 1e300, 5e-324, float('inf'), float('-inf'), float('nan'),
          '', 'caf\u00e9', '\U0001f600', '\udc80', '\ud83d', '\x00\x7f"\\/']
def value(depth):
    kind = random.randrange(4 if depth else 2)
    if kind == 2:
        return [value(depth - 1) for i in range(random.randrange(4))]
    if kind == 3:
        return {random.choice(['a', 'b c', '\udc80', '"', 'x%d' % i]): value(depth - 1) for i in range(random.randrange(5))}
    return random.choice(LEAVES)
for i in range(300):
    record = {'state': 'requested', 'state_time': random.choice([1, 1.7e9 + random.random()]),
              'node_types': random.choice([['small'], ['\udc80', 'b']]), 'requestor_data': value(4),
              'relative_priority': random.choice([0, 1.5, -3, None]), 'created_time': random.choice([None, 17, 17.5]),
              'event_id': random.choice([None, '\ud800', 'x']), 'zz': value(3), '\udc80': value(2)}
    separators = random.choice([(', ', ': '), (',', ':'), (' , ', ':\t')])
    print(json.dumps(record, separators=separators))
)",
                            "");
  std::string pairs;
  written.pop_back();  // the last line's end
  std::vector<std::string> lines = Split(written, '\n');
  ASSERT_EQ(lines.size(), 300u);
  for (const std::string& line : lines) {
    Expected<NodeRequest> request = ParseNodeRequest(line, WallTime());
    ASSERT_TRUE(request) << line << request.error().message();
    pairs += line + "\n" + ToJson(*request) + "\n";
  }
  EXPECT_EQ(Run(R"(
import json, sys
lines = sys.stdin.read().split('\n')
for theirs, ours in zip(lines[::2], lines[1::2]):
    theirs, ours = json.loads(theirs), json.loads(ours)
    for key in theirs:
        if repr(theirs[key]) != repr(ours[key]):
            print(key, ascii(theirs[key]), ascii(ours[key]))
)",
                pairs),
            "");
}

// A text with random damage is accepted by both or by neither.
TEST_F(PythonPeer, AcceptsAndRefusesTheSameTexts) {
  constexpr std::string_view kSeeds[] = {R"({"a": [1, -0.5e+3, true, null], "b\u00e9\udc80": {"c": "x\n"}})",
                                         R"([NaN, -Infinity, Infinity, 0, "\\"])",
                                         "{\"caf\xc3\xa9\": \"\xf0\x9f\x98\x80\xed\x9f\xbf\"}",
                                         R"( [ { } , [ ] , "" , 12345678901234567890 ] )"};
  constexpr std::string_view kBytes = "{}[],:\"\\0123456789.eE+-truefalsn NIuy\n\x01\x80\xc3\xed\xa0\xf4";
  SeededRandom random(11);
  std::string input, ours;
  for (int i = 0; i < 4000; ++i) {
    std::string text(kSeeds[random.Below(std::size(kSeeds))]);
    for (std::uint64_t n = random.Below(3); n > 0; --n) {
      std::size_t at = random.Below(text.size());
      char byte = kBytes[random.Below(kBytes.size())];
      switch (random.Below(3)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1 + random.Below(3));
      }
    }
    for (char c : text) input += fmt::format("{:02x}", static_cast<unsigned char>(c));
    input += '\n';
    JsonScanner in(text);
    ours += in.Value() && in.End() ? "taken\n" : "refused\n";
  }
  std::string theirs = Run(R"(
import json, sys
for line in sys.stdin:
    try:
        json.loads(bytes.fromhex(line).decode())
        print('taken')
    except ValueError:
        print('refused')
)",
                           input);
  EXPECT_EQ(ours, theirs);
  EXPECT_NE(ours.find("taken"), ours.npos);
}

}  // namespace
}  // namespace nodepool
