#include "config/yaml/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>
#include <map>

namespace nodepool::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The document as JSON, or the error.
std::string ReadYaml(const std::string& text) {
  Expected<Value> value = ParseYaml(text);
  return value ? boost::json::serialize(value->ToJson()) : "error: " + value.error().message();
}

struct DialectRow {
  std::string text;
  std::string expected;  // JSON, or the beginning of "error: ..."
};

class DialectTest : public ::testing::TestWithParam<DialectRow> {};

// configuration.md 2.2
TEST_P(DialectTest, ReadsAsSpecified) {
  std::string found = ReadYaml(GetParam().text);
  if (GetParam().expected.starts_with("error")) {
    EXPECT_THAT(found, StartsWith(GetParam().expected)) << GetParam().text;
  } else {
    EXPECT_EQ(found, GetParam().expected) << GetParam().text;
  }
}

const DialectRow kDialectRows[] = {
    // Documents.
    {"", "null"},
    {"# nothing\n", "null"},
    {"---\n", "null"},
    {"a: 1\n...\n", R"({"a":1})"},
    {"a: 1\n---\nb: 2\n", "error: line 2, column 1: a second document"},
    {"- a\nb: c\n", "error: line 2, column 1: a second document"},
    {"[1, x]", R"([1,"x"])"},
    {"%YAML 1.2\n---\na: yes\n", R"({"a":true})"},
    {"\xEF\xBB\xBF"
     "a: 1\n",
     R"({"a":1})"},
    {"a: \xff\n", "error: not UTF-8"},
    {"a: 1\nb: x\x07y\n", "error: line 2, column 5: a control character"},
    {"a: \xC2\x80\n", "error: line 1, column 4: a control character"},
    {"a: 1\r\nb: 2\r\n", R"({"a":1,"b":2})"},
    // Mappings.
    {"a: 1\nb: 2\na: 3\n", R"({"a":3,"b":2})"},
    {"yes: 1\n", R"({"yes":1})"},
    {"? [a]\n: b\n", "error: line 1, column 3: a list or mapping cannot be a key"},
    {"x: &x [a]\n*x : b\n", "error: line 1, column 4: a list or mapping cannot be a key"},
    {"a: 1\nb\n", "error: line 2, column 1: expected ':' after 'b'"},
    {"a: 1\nb: [1, 2\n", "error: line 2, column"},
    {"{a: 1, b}\n", R"({"a":1,"b":null})"},
    {"a:\n", R"({"a":null})"},
    // Merge keys.
    {"x: &x {a: 1, b: 2}\ny: {b: 3, <<: *x}\n", R"({"x":{"a":1,"b":2},"y":{"a":1,"b":3}})"},
    {"y:\n  <<: [{a: 1}, {a: 2, b: 2}]\n", R"({"y":{"a":1,"b":2}})"},
    {"y: {<<: 5}\n", "error: line 1, column 9: '<<' needs"},
    {"y: {<<: [5]}\n", "error: line 1, column 10: '<<' needs"},
    {"y: {'<<': 5}\n", R"({"y":{"<<":5}})"},
    {"y: <<\n", "error: line 1, column 4: '<<' has no meaning"},
    {"y: =\n", "error: line 1, column 4: '=' has no meaning"},
    // Anchors.
    {"a: &x [1]\nb: *x\n", R"({"a":[1],"b":[1]})"},
    {"a: &x\nb: *x\n", R"({"a":null,"b":null})"},
    {"b: *x\n", "error: line 1, column 4: the referenced anchor is not defined"},
    {"a: &x 1\nb: &x 2\n", "error: line 2, column 4: the anchor 'x' is defined twice"},
    {"a: &x [*x]\n", "error: line 1, column 8: an alias may not be inside the value that it names"},
    // Tags.
    {"a: !!str 5\nb: !!int '5'\n", R"({"a":"5","b":5})"},
    {"a: !!map {b: 1}\nc: !!seq [1]\nd: !!set {e, f}\n", R"({"a":{"b":1},"c":[1],"d":{"e":null,"f":null}})"},
    {"a: !foo 1\n", "error: line 1, column 4: the tag '!foo'"},
    {"a: !foo {}\n", "error: line 1, column 4: the tag '!foo'"},
    {"a: !!str {}\n", "error: line 1, column 4: the tag"},
    // Scalars.
    {"a: '5'\nb: \"yes\"\nc: |\n  12\n", R"({"a":"5","b":"yes","c":"12\n"})"},
    {"a: >-\n  x\n  y\n", R"({"a":"x y"})"},
    {"a: 'x\nb: y\n", "error: line 1, column 4: the quote that opens here is never closed"},
    {"a: &n !!str \"x\n", "error: line 1, column 4: the quote that opens here is never closed"},
    {"a: 'it''s'\n", R"({"a":"it's"})"},
    {"a: \"x\\\"\"\n", R"({"a":"x\""})"},
    {"a: 2024-13-01\n", "error: line 1, column 4: '2024-13-01' is not a date"},
    {"a: %(NODEPOOL_X)\n", "error: line 1, column 4"},
    // Tabs.
    {"a:\n\tb: 1\n", "error: line 2"},
    {"a:\n\tb\n", "error: line 2, column 1: a tab is used"},
    {"a:\n\t- b\n", "error: line 2"},
};
INSTANTIATE_TEST_SUITE_P(Table, DialectTest, ::testing::ValuesIn(kDialectRows));

TEST(YamlReaderTest, ValuesKnowTheirPosition) {
  Expected<Value> value = ParseYaml("a:\n  - b: x\n    c: 5\n");
  ASSERT_TRUE(value);
  const Value& item = value->Find("a")->list()[0];
  EXPECT_EQ(item.Find("c")->position().line, 3);
  EXPECT_EQ(item.Find("c")->position().column, 8);
  EXPECT_EQ(item.Find("b")->position().line, 2);
}

TEST(YamlReaderTest, DeepNestingIsRefused) {
  EXPECT_THAT(ReadYaml(std::string(50'000, '[')), StartsWith("error"));
  EXPECT_THAT(ReadYaml(std::string(99, '[') + std::string(99, ']')), StartsWith("[["));
}

// Nine levels of nine aliases each would be a billion values.
TEST(YamlReaderTest, AliasesCannotMultiplyWithoutBound) {
  std::string text = "l0: &l0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int level = 1; level < 10; ++level) {
    text += "l" + std::to_string(level) + ": &l" + std::to_string(level) + " [";
    for (int i = 0; i < 9; ++i) text += (i == 0 ? "*l" : ", *l") + std::to_string(level - 1);
    text += "]\n";
  }
  EXPECT_THAT(ReadYaml(text), HasSubstr("aliases make this document too large"));
}

TEST(YamlReaderTest, MergesCannotMultiplyWithoutBound) {
  std::string text = "base: &base {";
  for (int i = 0; i < 20'000; ++i) text += "k" + std::to_string(i) + ": 1, ";
  text += "}\nlist:\n";
  for (int i = 0; i < 2'000; ++i) text += "- <<: *base\n";
  EXPECT_THAT(ReadYaml(text), HasSubstr("aliases make this document too large"));
}

Environment Variables(std::map<std::string, std::string, std::less<>> variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

// configuration.md 2.1
TEST(SubstitutionTest, ReplacesOnlySetVariablesWithThePrefix) {
  Environment environment = Variables({{"NODEPOOL_PORT", "8005"}, {"HOME", "/root"}, {"NODEPOOL_", "empty"}});
  EXPECT_EQ(SubstituteEnvironment("port: %(NODEPOOL_PORT)", environment), "port: 8005");
  EXPECT_EQ(SubstituteEnvironment("a%(NODEPOOL_PORT)b%(NODEPOOL_PORT)", environment), "a8005b8005");
  EXPECT_EQ(SubstituteEnvironment("%(HOME) %(NODEPOOL_X) %(nodepool_port)", environment),
            "%(HOME) %(NODEPOOL_X) %(nodepool_port)");
  EXPECT_EQ(SubstituteEnvironment("%(NODEPOOL_%(NODEPOOL_PORT)", environment), "%(NODEPOOL_8005");
  EXPECT_EQ(SubstituteEnvironment("%(NODEPOOL_PORT", environment), "%(NODEPOOL_PORT");
  EXPECT_EQ(SubstituteEnvironment("%(NODEPOOL_)", environment), "empty");
  EXPECT_EQ(SubstituteEnvironment("%", environment), "%");
}

TEST(SubstitutionTest, ReplacementsAreNotReplacedAgain) {
  Environment environment = Variables({{"NODEPOOL_A", "%(NODEPOOL_A)"}});
  EXPECT_EQ(SubstituteEnvironment("x %(NODEPOOL_A)", environment), "x %(NODEPOOL_A)");
}

TEST(ReadYamlFileTest, NamesTheFile) {
  std::string path = ::testing::TempDir() + "/read_yaml_file_test_" + std::to_string(getpid());
  EXPECT_THAT(ReadYamlFile(path, Variables({})).error().message(),
              StartsWith(path + ": cannot be read: No such file"));
  std::ofstream(path) << "port: %(NODEPOOL_PORT)\nx: [";
  EXPECT_THAT(ReadYamlFile(path, Variables({{"NODEPOOL_PORT", "1"}})).error().message(),
              StartsWith(path + ": line "));
  std::ofstream(path) << "port: %(NODEPOOL_PORT)\n";
  EXPECT_EQ(ReadYamlFile(path, Variables({{"NODEPOOL_PORT", "1"}}))->Find("port")->int_value(), 1);
  EXPECT_EQ(ReadYamlFile(::testing::TempDir(), Variables({})).error().verdict(), Verdict::kFail);
  std::filesystem::remove(path);
}

// configuration.md 2.2
TEST(YamlReaderTest, KeysThatAreGivenAgainAreReported) {
  Expected<Document> document = ParseDocument("a: 1\nb:\nc: {d: 1, d: 2}\na: 2\nb: 3\n");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root.Find("a")->int_value(), 2);
  std::vector<std::string> told;
  for (const RepeatedKey& repeated : document->repeated) told.push_back(repeated.ToString());
  EXPECT_THAT(told,
              ::testing::ElementsAre("line 3, column 11: d is given again; what line 3 says has no effect",
                                     "line 4, column 1: a is given again; what line 1 says has no effect",
                                     "line 5, column 1: b is given again; what line 2 says has no effect"));
  EXPECT_TRUE(document->repeated[1].is_content_lost);
  EXPECT_FALSE(document->repeated[2].is_content_lost) << "nothing was said";
}

TEST(YamlReaderTest, AKeyThatReplacesAMergedOneIsNotGivenAgain) {
  Expected<Document> document = ParseDocument("x: &x {a: 1}\ny: {<<: *x, a: 2}\nz: {a: 3, <<: *x}\n");
  ASSERT_TRUE(document);
  EXPECT_TRUE(document->repeated.empty());
}

TEST(YamlReaderTest, OnlySomeOfVeryManyRepeatedKeysAreReported) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a: 1\n";
  EXPECT_EQ(ParseDocument(text)->repeated.size(), 100u);
}

}  // namespace
}  // namespace nodepool::config
