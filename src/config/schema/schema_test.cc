#include "config/schema/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "config/main_schema.h"
#include "config/schema/schema_docs.h"
#include "config/schema/section.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> Problems(const Schema& schema, const std::string& text) {
  std::vector<std::string> texts;
  for (const Problem& problem : Validate(*ParseYaml(text), schema)) {
    texts.push_back(problem.message + " @ " + problem.path);
  }
  return texts;
}

Schema One(Schema schema) { return Schema::Map({Setting("x", std::move(schema), "help")}); }

TEST(ValidateTest, TextsToChooseFrom) {
  Schema schema = Schema::Among({"raw", "image"});
  EXPECT_THAT(Problems(One(schema), "x: raw"), IsEmpty());
  for (const char* bad : {"x: qcow2", "x: 1", "x:", "x: [raw]"}) {
    EXPECT_THAT(Problems(One(schema), bad), ElementsAre("not a valid value for dictionary value @ data['x']"))
        << bad;
  }
  EXPECT_THAT(Problems(Schema::List(schema), "[raw, rwa]"), ElementsAre("not a valid value @ data[1]"));
  EXPECT_EQ(Validate(*ParseYaml("x: imag"), One(schema)).front().detail,
            "found a string 'imag'; expected one of raw, image; did you mean 'image'?");
  EXPECT_THAT(Problems(One(Schema::OneOf({schema, Schema::Null()})), "x: null"), IsEmpty());
  EXPECT_EQ(boost::json::serialize(ToJsonSchema(schema)), R"({"type":"string","enum":["raw","image"]})");
}

// configuration.md 13, "Schema semantics"
TEST(ValidateTest, TypesAreStrict) {
  EXPECT_THAT(Problems(One(Schema::Int()), "x: 5"), IsEmpty());
  EXPECT_THAT(Problems(One(Schema::Int()), "x: yes"), IsEmpty());
  EXPECT_THAT(Problems(One(Schema::Int()), "x: 5.0"),
              ElementsAre("expected int for dictionary value @ data['x']"));
  EXPECT_THAT(Problems(One(Schema::Int()), "x: '5'"),
              ElementsAre("expected int for dictionary value @ data['x']"));
  EXPECT_THAT(Problems(One(Schema::Int()), "x:"),
              ElementsAre("expected int for dictionary value @ data['x']"));
  EXPECT_THAT(Problems(One(Schema::Bool()), "x: 1"),
              ElementsAre("expected bool for dictionary value @ data['x']"));
  EXPECT_THAT(Problems(One(Schema::Float()), "x: 1"),
              ElementsAre("expected float for dictionary value @ data['x']"));
  EXPECT_THAT(Problems(One(Schema::String()), "x: 7"),
              ElementsAre("expected str for dictionary value @ data['x']"));
  EXPECT_THAT(Problems(One(Schema::List(Schema::Int())), "x:"),
              ElementsAre("expected a list for dictionary value @ data['x']"));
  EXPECT_THAT(Problems(One(Schema::List(Schema::Int())), "x: []"), IsEmpty());
  EXPECT_THAT(Problems(One(Schema::Number()), "x: 1"), IsEmpty());
  EXPECT_THAT(Problems(One(Schema::OpenMap(Schema::String())), "x: {a: b, c: 1}"),
              ElementsAre("expected str for dictionary value @ data['x']['c']"));
}

TEST(ValidateTest, ItemsAndNesting) {
  Schema list = One(Schema::List(Schema::Map({Setting("n", Schema::Int(), "")})));
  EXPECT_THAT(
      Problems(list, "x: [{n: 1}, 5, {n: a, m: 1}]"),
      ElementsAre("expected int for dictionary value @ data['x'][2]['n']",
                  "extra keys not allowed @ data['x'][2]['m']", "expected a dictionary @ data['x'][1]"));
}

TEST(ValidateTest, ProblemsComeInDocumentOrderMissingKeysLast) {
  Schema schema = Schema::Map({Setting("a", Schema::Int(), "").Required(), Setting("b", Schema::Int(), "")});
  EXPECT_THAT(
      Problems(schema, "z: 1\nb: x\ny: 1\n"),
      ElementsAre("extra keys not allowed @ data['z']", "expected int for dictionary value @ data['b']",
                  "extra keys not allowed @ data['y']", "required key not provided @ data['a']"));
}

TEST(ValidateTest, TheMessageIsThatOfTheChoiceThatMatchedFurthest) {
  Schema inner = Schema::Map({Setting("k", Schema::Int(), "")});
  Schema schema = One(Schema::OneOf({Schema::String(), inner}));
  EXPECT_THAT(Problems(schema, "x: {k: a}"),
              ElementsAre("expected int for dictionary value @ data['x']['k']"));
  EXPECT_THAT(Problems(schema, "x: [1]"), ElementsAre("expected str for dictionary value @ data['x']"));
}

TEST(ValidateTest, GroupsOfKeys) {
  Schema schema = Schema::Map({Setting("a", Schema::Int(), ""), Setting("b", Schema::Int(), "")});
  EXPECT_THAT(Problems(schema.RequireOneOf({"a", "b"}), "{}"),
              ElementsAre("required key not provided @ data['a']"));
  EXPECT_THAT(Problems(schema.RequireOneOf({"a", "b"}), "b: 1"), IsEmpty());
  EXPECT_THAT(Problems(schema.Exclusive({"a", "b"}), "{a: 1, b: 1}"),
              ElementsAre("two or more values in the same group of exclusion @ data"));
}

TEST(ValidateTest, Bounds) {
  Schema schema = One(Schema::Int().Between(0, 10));
  EXPECT_THAT(Problems(schema, "x: 10"), IsEmpty());
  EXPECT_THAT(Problems(schema, "x: 11"), ElementsAre("expected a number from 0 to 10 @ data['x']"));
}

TEST(ValidateTest, MessagesNamePlaceFindingAndRemedy) {
  Schema schema =
      Schema::Map({Setting("port", Schema::Int(), ""), Setting("key", Schema::Int(), "").Secret()});
  auto text = [&](const std::string& yaml) { return Validate(*ParseYaml(yaml), schema).at(0).ToString(); };
  EXPECT_EQ(text("port: many"),
            "expected int for dictionary value @ data['port'] (line 1, column 7: found a string 'many')");
  EXPECT_EQ(text("\npot: 1"),
            "extra keys not allowed @ data['pot'] (line 2, column 6: did you mean 'port'?)");
  EXPECT_THAT(text("key: hunter2"), ::testing::Not(HasSubstr("hunter2")));
}

TEST(UnknownKeysTest, DescendsThroughListsAndChoices) {
  Schema inner = Schema::Map({Setting("known", Schema::Any(), "")});
  Schema schema = Schema::Map({Setting("x", Schema::OneOf({Schema::String(), Schema::List(inner)}), "")});
  EXPECT_THAT(UnknownKeys(*ParseYaml("x: [{known: {any: 1}, other: 1}]"), schema, ""),
              ElementsAre(HasSubstr("x[0].other is not a known setting")));
  EXPECT_THAT(UnknownKeys(*ParseYaml("x: 5"), schema, ""), IsEmpty());
}

TEST(SectionTest, ReadsLeniently) {
  Schema schema =
      Schema::Map({Setting("i", Schema::Int(), "").Default(7), Setting("f", Schema::Float(), ""),
                   Setting("b", Schema::Bool(), "").Default(true), Setting("s", Schema::String(), ""),
                   Setting("l", Schema::List(Schema::String()), "")});
  Section section(*ParseYaml("i: ' 12 '\nf: '1.5'\nb: 0\ns: 0755\nl: [1.10, yes]\n"), schema, "");
  EXPECT_EQ(section.Int("i"), 12);
  EXPECT_EQ(section.Float("f"), 1.5);
  EXPECT_FALSE(section.Bool("b"));
  EXPECT_EQ(section.Text("s"), "0755");
  EXPECT_THAT(section.TextList("l"), ElementsAre("1.10", "yes"));
  Section empty(*ParseYaml("i:\n"), schema, "");
  EXPECT_EQ(empty.Int("i"), 7);
  EXPECT_TRUE(empty.Bool("b"));
  EXPECT_EQ(empty.Text("s"), "");
  EXPECT_EQ(empty.OptionalText("s"), std::nullopt);
}

TEST(SectionTest, ExcessiveSecondsMeanForEver) {
  EXPECT_EQ(SecondsToDuration(1e300), Duration::max());
  EXPECT_EQ(SecondsToDuration(0.5), std::chrono::milliseconds(500));
}

// A setting is declared once, and all documentation of it comes from there.
TEST(SchemaDocsTest, TheMainSchemaCanBePrinted) {
  std::string table = ToMarkdown(MainSchema());
  EXPECT_THAT(table, HasSubstr("| `webapp.port` | integer, 0 to 65535 | `8005` | restart | TCP port of the "
                               "web server; 0: any free one. |"));
  EXPECT_THAT(table, HasSubstr("| `labels[].name` | string | required | reload |"));
  EXPECT_THAT(table, ::testing::Not(HasSubstr("gearman")));
  std::string json = boost::json::serialize(ToJsonSchema(MainSchema()));
  EXPECT_THAT(json, StartsWith(R"({"type":"object","properties":{"webapp":{"type":"object")"));
  EXPECT_THAT(json, HasSubstr(R"("required":["tenant-name"],"additionalProperties":{"type":"integer"})"));
}

TEST(SchemaDocsTest, EverySettingHasHelp) {
  for (const Schema* schema : {&MainSchema(), &SecureSchema()}) {
    for (const Setting& setting : schema->settings()) {
      EXPECT_NE(setting.help.empty(), setting.removed.empty()) << setting.key;
    }
  }
}

}  // namespace
}  // namespace nodepool::config
