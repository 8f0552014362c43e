#include "config/yaml/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "config/yaml/value.h"

namespace nodepool::config {

namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = Value::Kind;

struct ScalarRow {
  std::string text;
  Kind kind;
  double number = 0;  // of ints, floats and booleans
};

class PlainScalarTest : public ::testing::TestWithParam<ScalarRow> {};

// The table of configuration.md 2.2.
TEST_P(PlainScalarTest, ResolvesByYaml11) {
  Expected<Value> value = ResolvePlainScalar(GetParam().text, {1, 1});
  ASSERT_TRUE(value) << value.error().message();
  EXPECT_EQ(value->kind(), GetParam().kind) << GetParam().text << " is " << value->KindName();
  if (value->kind() != GetParam().kind) return;
  if (value->kind() != Kind::kNull) {
    EXPECT_EQ(value->text(), GetParam().text);
  }
  if (value->kind() == Kind::kInt) {
    EXPECT_EQ(value->int_value(), static_cast<std::int64_t>(GetParam().number));
  }
  if (value->kind() == Kind::kFloat) {
    EXPECT_DOUBLE_EQ(value->float_value(), GetParam().number);
  }
  if (value->kind() == Kind::kBool) {
    EXPECT_EQ(value->bool_value(), GetParam().number != 0);
  }
}

const ScalarRow kScalarRows[] = {
    {"", Kind::kNull},
    {"~", Kind::kNull},
    {"NULL", Kind::kNull},
    {"NuLL", Kind::kString},
    {"yes", Kind::kBool, 1},
    {"ON", Kind::kBool, 1},
    {"True", Kind::kBool, 1},
    {"no", Kind::kBool, 0},
    {"Off", Kind::kBool, 0},
    {"FALSE", Kind::kBool, 0},
    {"y", Kind::kString},
    {"n", Kind::kString},
    {"tRUE", Kind::kString},
    {"0b101", Kind::kInt, 5},
    {"-0b1_0", Kind::kInt, -2},
    {"010", Kind::kInt, 8},
    {"0777", Kind::kInt, 511},
    {"00", Kind::kInt, 0},
    {"0", Kind::kInt, 0},
    {"-0", Kind::kInt, 0},
    {"1_000", Kind::kInt, 1000},
    {"+5", Kind::kInt, 5},
    {"0x_fF", Kind::kInt, 255},
    {"12:30", Kind::kInt, 750},
    {"190:20:30", Kind::kInt, 685230},
    {"1:60", Kind::kString},
    {"0:0", Kind::kString},
    {"5.", Kind::kFloat, 5},
    {"8.10", Kind::kFloat, 8.1},
    {"1.0e+3", Kind::kFloat, 1000},
    {"1.0e3", Kind::kString},
    {"1e3", Kind::kString},
    {"1E5", Kind::kString},
    {".5", Kind::kFloat, 0.5},
    {".5e+1", Kind::kFloat, 5},
    {"-.5", Kind::kString},
    {"+.5", Kind::kString},
    {"12:30:45.6", Kind::kFloat, 45045.6},
    {"01:30.5", Kind::kFloat, 90.5},
    {"-1_0.5", Kind::kFloat, -10.5},
    {"NaN", Kind::kString},
    {"inf", Kind::kString},
    {"-.INF", Kind::kFloat, -std::numeric_limits<double>::infinity()},
    {"0.1.2", Kind::kString},
    {"08", Kind::kString},
    {"0o10", Kind::kString},
    {"2024-02-29", Kind::kTimestamp},
    {"2001-1-1", Kind::kString},
    {"2001-12-14t21:59:43.10-05:00", Kind::kTimestamp},
    {"2001-12-14 21:59:43Z", Kind::kTimestamp},
    {"2001-1-4 1:59:43", Kind::kTimestamp},
    {"1.2.3.4", Kind::kString},
    {"host-1", Kind::kString},
    {"-", Kind::kString},
    {"+", Kind::kString},
    {".", Kind::kString},
    {"é", Kind::kString},
};
INSTANTIATE_TEST_SUITE_P(Table, PlainScalarTest, ::testing::ValuesIn(kScalarRows));

TEST(ScalarTest, IntegersBeyond64BitsSaturate) {
  EXPECT_EQ(ResolvePlainScalar("99999999999999999999", {})->int_value(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(ResolvePlainScalar("-99999999999999999999", {})->int_value(),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(ResolvePlainScalar("9223372036854775807", {})->int_value(),
            std::numeric_limits<std::int64_t>::max());
}

TEST(ScalarTest, NanIsAFloat) { EXPECT_TRUE(std::isnan(ResolvePlainScalar(".nan", {})->float_value())); }

TEST(ScalarTest, MalformedNumbersAndDatesAreErrors) {
  for (const char* text : {"0b_", "0x_", "2024-13-01", "2023-02-29", "=", "<<"}) {
    EXPECT_FALSE(ResolvePlainScalar(text, {})) << text;
  }
}

TEST(ScalarTest, StandardTagsAreHonoured) {
  EXPECT_EQ(ResolveTaggedScalar("tag:yaml.org,2002:str", "5", {})->kind(), Kind::kString);
  EXPECT_EQ(ResolveTaggedScalar("tag:yaml.org,2002:int", "010", {})->int_value(), 8);
  EXPECT_EQ(ResolveTaggedScalar("tag:yaml.org,2002:float", "3", {})->float_value(), 3.0);
  EXPECT_EQ(ResolveTaggedScalar("tag:yaml.org,2002:bool", "Yes", {})->bool_value(), true);
  EXPECT_TRUE(ResolveTaggedScalar("tag:yaml.org,2002:null", "x", {})->is_null());
  EXPECT_EQ(ResolveTaggedScalar("tag:yaml.org,2002:binary", "aGk=", {})->text(), "hi");
  EXPECT_FALSE(ResolveTaggedScalar("tag:yaml.org,2002:binary", "?", {}));
  EXPECT_FALSE(ResolveTaggedScalar("tag:yaml.org,2002:int", "x", {}));
  EXPECT_FALSE(ResolveTaggedScalar("!foo", "x", {}));
  EXPECT_FALSE(ResolveTaggedScalar("tag:yaml.org,2002:python/object", "x", {}));
}

// configuration.md 7.4
TEST(ScalarTest, ReleasesAreWrittenAsPythonText) {
  auto text = [](const std::string& scalar) { return PythonText(*ResolvePlainScalar(scalar, {})); };
  EXPECT_EQ(text("20.10"), "20.1");
  EXPECT_EQ(text("20.0"), "20.0");
  EXPECT_EQ(text("10000000000000000.0"), "1e+16");
  EXPECT_EQ(text("0.00001"), "1e-05");
  EXPECT_EQ(text("010"), "8");
  EXPECT_EQ(text("yes"), "True");
  EXPECT_EQ(text("2024-02-29"), "2024-02-29");
  EXPECT_EQ(text("jammy"), "jammy");
}

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
