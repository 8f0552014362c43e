#include "config/schema/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "config/main_schema.h"
#include "config/schema/bindings.h"
#include "config/schema/section.h"
#include "config/yaml/yaml_reader.h"

namespace nodepool::config {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
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

enum class Colour { kRed, kBlue };

struct Login {
  std::string user = "zuul";
  int port = 22;
};

struct Disk {
  std::string name;
  int size = 10;
};

struct Base {
  LabelName name;
  virtual ~Base() = default;
};

struct Machine : Base {
  bool is_fast = true;
  int count = 3;
  double share = 0.5;
  double limit = std::numeric_limits<double>::infinity();
  Duration timeout = std::chrono::seconds(60);
  Duration pause = std::chrono::milliseconds(100);
  std::optional<int> cores;
  std::optional<Duration> age;
  std::optional<std::string> python = "auto";
  std::vector<std::string> zones = {"a", "b"};
  std::map<std::string, std::string> tags;
  boost::json::object meta;
  boost::json::array env;
  Colour colour = Colour::kRed;
  Login login;
  Disk root;
  std::optional<Disk> cache;
  std::vector<Disk> disks;
  std::string bucket;
  std::string shouted;
};

Bindings<Machine> MachineSettings() {
  Bindings<Base> base = {{Setting("name", "Its name.").Required(), &Base::name}};
  Bindings<Login> login = {{Setting("user", "Who."), &Login::user},
                           {Setting("port", Schema::Port(), "Where."), &Login::port}};
  Bindings<Disk> disk = {{Setting("name", "Its name.").Required(), &Disk::name},
                         {Setting("size", Schema::Int().AtLeast(1), "Its size.").Unit("GB"), &Disk::size}};
  Bindings<Machine> settings = {
      {Setting("fast", "A truth."), &Machine::is_fast},
      {Setting("count", Schema::Int().Between(0, 100), "A count."), &Machine::count},
      {Setting("share", Schema::Number().Between(0, 1), "A number."), &Machine::share},
      {Setting("limit", Schema::Int(), "A limit."), &Machine::limit},
      {Setting("timeout", "A time."), &Machine::timeout},
      {Setting("pause", Schema::Number(), "A short time."), &Machine::pause},
      {Setting("cores", "None."), &Machine::cores},
      {Setting("age", "A time, or none."), &Machine::age},
      {Setting("python", "Text."), &Machine::python},
      {Setting("zones", "Texts."), &Machine::zones},
      {Setting("tags", "Texts by name."), &Machine::tags},
      {Setting("meta", "Anything."), &Machine::meta},
      {Setting("env", "Anything."), &Machine::env},
      {Setting("colour", "A word."), &Machine::colour,
       Words<Colour>{{"red", Colour::kRed}, {"blue", Colour::kBlue}}},
      {Setting("login-user", "Who."), &Machine::login, &Login::user},
      {Setting("root", "A mapping."), &Machine::root, disk},
      {Setting("cache", "A mapping, or none."), &Machine::cache, disk},
      {Setting("disks", "Mappings."), &Machine::disks, disk},
      {Setting("storage", "Mapping of its own."),
       Bindings<Machine>{{Setting("bucket", "Its name.").Required(), &Machine::bucket}}},
      {Setting("quiet", Schema::String(), "Read by code.").Default("psst"),
       [](const Section& section, const std::string& key, Machine& machine) {
         machine.shouted = section.Text(key) + "!";
       }},
      Setting("ignored", Schema::Any(), "Not read."),
  };
  return settings.With(base).With(&Machine::login, login);
}

Machine ReadMachine(const std::string& text, Machine machine = {}) {
  Bindings<Machine> settings = MachineSettings();
  settings.Read(Section(*ParseYaml(text), settings.ToSchema(), "machine"), machine);
  return machine;
}

std::string MachineFault(const std::string& text) {
  try {
    ReadMachine(text);
  } catch (const Error& error) {
    return error.message();
  }
  return "no error";
}

TEST(BindingsTest, WhatIsAbsentStaysAsItIs) {
  Machine before;
  before.count = 7;
  before.zones = {"z"};
  before.python = "python3";
  Machine machine = ReadMachine("{name: n, count: null}", before);
  EXPECT_EQ(machine.name, LabelName("n"));
  EXPECT_EQ(machine.count, 7);
  EXPECT_THAT(machine.zones, ElementsAre("z"));
  EXPECT_EQ(machine.python, "python3");
  EXPECT_EQ(machine.timeout, std::chrono::seconds(60));
  EXPECT_FALSE(machine.cores || machine.age || machine.cache);
  EXPECT_EQ(machine.shouted, "psst!");
}

TEST(BindingsTest, EachTypeIsReadLeniently) {
  Machine machine = ReadMachine(R"(
name: 1.10
fast: 0
count: '12'
share: 1
limit: 2.5
timeout: 1.5
pause: '2'
cores: 99999999999
age: 5
python: 3
zones: x
tags: {a: 1, b: yes}
meta: {deep: [1]}
env: [{a: 1}]
colour: blue
login-user: root
port: '2222'
root: {name: r}
cache: {name: c, size: 2}
disks: [{name: d}, {name: e, size: 5}]
storage: {bucket: b}
quiet: hey
unknown: 1
)");
  EXPECT_EQ(machine.name, LabelName("1.10"));
  EXPECT_FALSE(machine.is_fast);
  EXPECT_EQ(machine.count, 12);
  EXPECT_EQ(machine.share, 1);
  EXPECT_EQ(machine.limit, 2.5);
  EXPECT_EQ(machine.timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(machine.pause, std::chrono::seconds(2));
  EXPECT_EQ(machine.cores, std::numeric_limits<int>::max());
  EXPECT_EQ(machine.age, std::chrono::seconds(5));
  EXPECT_EQ(machine.python, "3");
  EXPECT_THAT(machine.zones, ElementsAre("x"));
  EXPECT_THAT(machine.tags, ElementsAre(Pair("a", "1"), Pair("b", "yes")));
  EXPECT_EQ(boost::json::serialize(machine.meta), R"({"deep":[1]})");
  EXPECT_EQ(boost::json::serialize(machine.env), R"([{"a":1}])");
  EXPECT_EQ(machine.colour, Colour::kBlue);
  EXPECT_EQ(machine.login.user, "root");
  EXPECT_EQ(machine.login.port, 2222);
  EXPECT_EQ(machine.root.name, "r");
  EXPECT_EQ(machine.root.size, 10);
  EXPECT_EQ(machine.cache->size, 2);
  ASSERT_EQ(machine.disks.size(), 2U);
  EXPECT_EQ(machine.disks[1].size, 5);
  EXPECT_EQ(machine.bucket, "b");
  EXPECT_EQ(machine.shouted, "hey!");
}

TEST(BindingsTest, FaultsNameThePlaceAndWhatIsExpected) {
  EXPECT_THAT(MachineFault("{}"), HasSubstr("line 1, column 1: machine.name: is required"));
  EXPECT_THAT(MachineFault("{name: n, count: 101}"),
              HasSubstr("machine.count: expected a number from 0 to 100, found an integer '101'"));
  EXPECT_THAT(MachineFault("{name: n, share: '-0.1'}"),
              HasSubstr("machine.share: expected a number from 0 to 1"));
  EXPECT_THAT(MachineFault("{name: n, port: 0}"),
              HasSubstr("machine.port: expected a number from 1 to 65535"));
  EXPECT_THAT(MachineFault("{name: n, colour: green}"),
              HasSubstr("machine.colour: expected one of red, blue, found green"));
  EXPECT_THAT(MachineFault("{name: n, disks: [{name: d}, {name: e, size: 0}]}"),
              HasSubstr("machine.disks[1].size: expected a number of at least 1, found an integer '0'"));
  EXPECT_THAT(MachineFault("{name: n, cache: {}}"), HasSubstr("machine.cache.name: is required"));
  EXPECT_THAT(MachineFault("{name: n, meta: 1}"), HasSubstr("machine.meta: expected a mapping"));
  EXPECT_THAT(MachineFault("{name: n, env: {}}"), HasSubstr("machine.env: expected a list"));
}

TEST(BindingsTest, StrictValidationHasTheSameBounds) {
  Schema schema = MachineSettings().ToSchema();
  auto problem = [&](const std::string& text) {
    std::vector<Problem> problems = Validate(*ParseYaml(text), schema);
    return problems.empty() ? "" : problems.front().message + " @ " + problems.front().path;
  };
  EXPECT_EQ(problem("{name: n, count: 100, share: 1, root: {name: r, size: 1}}"), "");
  EXPECT_EQ(problem("{name: n, count: 101}"), "expected a number from 0 to 100 @ data['count']");
  EXPECT_EQ(problem("{name: n, share: 1.5}"), "expected a number from 0 to 1 @ data['share']");
  EXPECT_EQ(problem("{name: n, root: {name: r, size: 0}}"),
            "expected a number of at least 1 @ data['root']['size']");
  EXPECT_EQ(problem("{name: n, colour: green}"), "not a valid value for dictionary value @ data['colour']");
  EXPECT_EQ(problem("{name: n, unknown: 1}"), "extra keys not allowed @ data['unknown']");
}

TEST(BindingsTest, TheReferenceHasTypesUnitsAndTheDefaultsOfTheMembers) {
  std::string table = ToMarkdown(MachineSettings().ToSchema());
  for (const char* row :
       {"| `fast` | boolean | `true` | reload | A truth. |", "| `count` | integer, 0 to 100 | `3` |",
        "| `share` | integer or float, 0 to 1 | `0.5` |", "| `limit` | integer |  |",
        "| `timeout` | integer, seconds | `60` |", "| `pause` | integer or float, seconds | `0.1` |",
        "| `cores` | integer |  |", "| `python` | string | `\"auto\"` |",
        "| `zones` | list of string | `[\"a\",\"b\"]` |", "| `colour` | one of red, blue | `\"red\"` |",
        "| `root.size` | integer, at least 1, GB | `10` |", "| `disks[].name` | string | required |",
        "| `storage.bucket` | string | required |", "| `quiet` | string | `\"psst\"` |",
        "| `name` | string | required |", "| `port` | integer, 1 to 65535 | `22` |"}) {
    EXPECT_THAT(table, HasSubstr(row));
  }
}

TEST(BindingsTest, ADefaultIsThatOfTheDerivedTypeUnlessAnotherSectionHasIt) {
  struct Slow : Machine {
    Slow() { timeout = std::chrono::seconds(300); }
  };
  Bindings<Machine> settings = {{Setting("timeout", "A time."), &Machine::timeout},
                                {Setting("fast", "As the pool.").Inherited(), &Machine::is_fast}};
  Schema schema = Bindings<Slow>(settings).ToSchema();
  EXPECT_EQ(schema.Find("timeout")->default_value, boost::json::value(300));
  EXPECT_TRUE(schema.Find("fast")->default_value.is_null());
}

TEST(BindingsTest, GroupsAndReplacedSettings) {
  Bindings<Disk> disk = {{Setting("name", "Its name."), &Disk::name},
                         {Setting("size", "Its size."), &Disk::size}};
  Bindings<Disk> other = disk.With({{Setting("size", Schema::Int(), "Another help."), &Disk::size}})
                             .RequireOneOf({"name"})
                             .Exclusive({"name", "size"});
  EXPECT_EQ(other.ToSchema().settings().size(), 2U);
  EXPECT_EQ(other.ToSchema().Find("size")->help, "Another help.");
  EXPECT_EQ(Validate(*ParseYaml("{name: n, size: 1}"), other.ToSchema()).size(), 1U);
  EXPECT_EQ(Validate(*ParseYaml("{size: 1}"), other.ToSchema()).size(), 1U);
}

}  // namespace

}  // namespace nodepool::config
