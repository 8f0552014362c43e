#include "config/yaml/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace nodepool::config {
namespace {

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

}  // namespace
}  // namespace nodepool::config
