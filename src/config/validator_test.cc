#include "config/validator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml/yaml_reader.h"

namespace nodepool::config {

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const Schema* Drivers(std::string_view name) {
  static const Schema label =
      Schema::Map({Setting("name", Schema::String(), ""), Setting("diskimage", Schema::String(), "")});
  static const Schema pool =
      Schema::Map({Setting("name", Schema::String(), ""), Setting("labels", Schema::List(label), "")});
  static const Schema image = Schema::Map({Setting("name", Schema::String(), "").Required()});
  static const Schema known =
      Schema::Map({Setting("pools", Schema::List(pool), ""), Setting("diskimages", Schema::List(image), ""),
                   Setting("name", Schema::Any(), "")});
  static const Schema unknown = Schema::Any();
  if (name == "openstack" || name == "fake" || name == "static") return &known;
  return name == "azure" ? &unknown : nullptr;
}

LoadOptions Options() { return {.drivers = Drivers, .driver_names = {"fake", "openstack", "static"}}; }

std::vector<std::string> Messages(const std::string& text, Finding::Level level) {
  std::vector<std::string> messages;
  for (const Finding& finding : ValidateDocument(*ParseDocument(text), Options()).findings) {
    if (finding.level == level) messages.push_back(finding.message);
  }
  return messages;
}
std::vector<std::string> Errors(const std::string& text) { return Messages(text, Finding::Level::kError); }
std::vector<std::string> Warnings(const std::string& text) {
  return Messages(text, Finding::Level::kWarning);
}
std::vector<std::string> Hints(const std::string& text) { return Messages(text, Finding::Level::kHint); }

TEST(ValidatorTest, AMissingFileIsAParsingFailure) {
  ValidationReport report = ValidateFile("/nonexistent/nodepool.yaml", Options());
  EXPECT_EQ(report.exit_status(), 1);
  EXPECT_THAT(report.findings.at(0).message, StartsWith("YAML parsing failed: /nonexistent/nodepool.yaml"));
}

TEST(ValidatorTest, AnEmptyMappingIsValid) {
  EXPECT_EQ(ValidateDocument(*ParseDocument("{}"), Options()).exit_status(), 0);
  EXPECT_THAT(Errors(""), ElementsAre(StartsWith("Schema validation failed: expected a dictionary")));
}

// configuration.17.1
TEST(ValidatorTest, AnExtraTopLevelKeyIsAnError) {
  EXPECT_THAT(Errors("foo: 1"),
              ElementsAre(StartsWith("Schema validation failed: extra keys not allowed @ data['foo']")));
}

// configuration.md 13: accepted here although the Python validator rejects them.
TEST(ValidatorTest, CompatibleImprovements) {
  EXPECT_THAT(Errors("zookeeper-timeout: 10"), IsEmpty());  // configuration.17.2
  EXPECT_THAT(Errors("diskimages: [{name: a, shell-type: cmd}]"), IsEmpty());
  EXPECT_THAT(Errors("zmq-publishers: [tcp://j:1]"), IsEmpty());  // D-52
  EXPECT_THAT(Errors("labels: [{min-ready: 1}]"),
              ElementsAre(HasSubstr("required key not provided @ data['labels'][0]['name']")));
}

// configuration.17.3
TEST(ValidatorTest, ABooleanIsAnInt) { EXPECT_THAT(Errors("build-log-retention: yes"), IsEmpty()); }

TEST(ValidatorTest, PlaceholdersWithoutVariableAreParsingFailures) {
  EXPECT_FALSE(ParseYaml("webapp: {port: %(NODEPOOL_TEST_PORT)}"));
}

// configuration.17.16
TEST(ValidatorTest, AllReferencesAreCheckedInOneRun) {
  const std::string text = R"(
labels: [{name: l}]
diskimages: [{name: d}, {name: d}, {name: e, parent: nope}]
providers:
- name: p
  DRIVER
  diskimages: [{name: x}]
  pools:
  - name: main
    labels: [{name: l, diskimage: d}, {name: m, diskimage: y}]
)";
  std::string openstack = text;
  openstack.replace(openstack.find("DRIVER"), 6, "driver: openstack");
  EXPECT_THAT(
      Errors(openstack),
      ElementsAre(StartsWith("diskimage x in provider p is not defined in the main diskimages list"),
                  StartsWith("label m in provider p not in top-level labels"),
                  StartsWith("label m in provider p uses diskimage y which is not defined in the main "
                             "diskimages list"),
                  StartsWith("diskimage d already defined"),
                  StartsWith("diskimage e has non-existant parent: nope")));
  std::string fake = text;
  fake.replace(fake.find("DRIVER"), 6, "driver: fake");
  EXPECT_THAT(Errors(fake), ElementsAre(StartsWith("diskimage d already"), StartsWith("diskimage e has")));
}

TEST(ValidatorTest, SectionsAreCheckedByTheirDriver) {  // S-validate-bad
  EXPECT_THAT(Errors("providers: [{name: p, driver: static, cloud: x}]"),
              ElementsAre(StartsWith(
                  "Schema validation failed: extra keys not allowed @ data['cloud'] (line 1, column "
                  "46: provider p")));
  EXPECT_THAT(Errors("providers: [{name: p, driver: runc}]"),
              ElementsAre(StartsWith("Schema validation failed: runc: unknown driver")));
  EXPECT_THAT(Errors("providers: [{driver: static}]"),
              ElementsAre(HasSubstr("required key not provided @ data['name']")));
  // The common keys win: a driver cannot loosen `name`.
  EXPECT_THAT(Errors("providers: [{name: 5, driver: static}]"), ElementsAre(HasSubstr("expected str")));
}

// configuration.17.11
TEST(ValidatorTest, ANameThatBeginsWithFakeDecidesTheDriver) {
  EXPECT_THAT(Errors("providers: [{name: fakecloud, driver: runc}]"), IsEmpty());
}

// D-20
TEST(ValidatorTest, WarningsDoNotChangeTheVerdict) {
  EXPECT_THAT(Warnings("providers: [{name: p, max-concurrency: 0}]"),
              ElementsAre(HasSubstr("max-concurrency 0")));
  EXPECT_THAT(Errors("providers: [{name: p, driver: azure, x: 1, max-concurrency: 0}]"), IsEmpty());
}

// BRK-12
TEST(ValidatorTest, ABreakerIsABooleanOrThresholds) {
  for (const char* good :
       {"true", "false", "{}", "{failures: 5, share: 80, window: 60, probe-after: 1, probe-max: 9}"})
    EXPECT_THAT(Errors(fmt::format("providers: [{{name: p, driver: fake, breaker: {}}}]", good)), IsEmpty())
        << good;
  for (const char* bad :
       {"often", "{failures: 0}", "{failures: 21}", "{share: 101}", "{window: 0}", "{probe: 1}"})
    EXPECT_THAT(Errors(fmt::format("providers: [{{name: p, driver: fake, breaker: {}}}]", bad)),
                ::testing::SizeIs(1))
        << bad;
}

TEST(ValidatorTest, AnIntegerThatPythonRefusesIsHintedAt) {
  EXPECT_THAT(
      Hints("zookeeper-timeout: 10"),
      ElementsAre(AllOf(StartsWith("line 1, column 20: zookeeper-timeout"), HasSubstr("write 10.0"))));
  EXPECT_THAT(Hints("zookeeper-timeout: 10.0"), IsEmpty());
}

TEST(ValidatorTest, AnUnknownDriverIsAnsweredWithThoseThereAre) {
  EXPECT_THAT(
      Errors("providers: [{name: p, driver: statick}]"),
      ElementsAre(AllOf(HasSubstr("statick: unknown driver (provider p, line 1); did you mean 'static'?"),
                        HasSubstr("there are fake, openstack, static"), HasSubstr("--drivers-dir"),
                        HasSubstr("NODEPOOL_DRIVERS_PATH"))));
}

// D-51: as strict as the Python validator, with the remedy.
TEST(ValidatorTest, NumericNamesAreRejectedWithTheRemedy) {
  EXPECT_THAT(Errors("labels: [{name: 7}]"),
              ElementsAre(HasSubstr("found an integer '7'; put quotes around it")));
}

// configuration.md 2.2
TEST(ValidatorTest, WhatIsDroppedIsAnError) {
  EXPECT_THAT(Errors("labels: [{name: a}]\nlabels: [{name: b}]\n"),
              ElementsAre("line 2, column 1: labels is given again; what line 1 says has no effect"));
  EXPECT_THAT(Errors("labels:\nlabels: [{name: b}]\n"), IsEmpty()) << "nothing is dropped";
}

// configuration.md 9.6
TEST(ValidatorTest, NamesThatAreGivenAgainAreErrors) {
  EXPECT_THAT(Errors("labels:\n- {name: a}\n- {name: b}\n- {name: a}\n"),
              ElementsAre("line 4, column 3: label a is defined again; what line 2 defines has no effect"));
  EXPECT_THAT(Errors("labels: [{name: a}]\nproviders:\n- name: p\n  pools:\n"
                     "  - {name: m, labels: [{name: a}, {name: a}]}\n  - {name: m}\n- {name: p}\n"),
              ElementsAre(HasSubstr("line 7, column 3: provider p is defined again; what line 3 defines"),
                          HasSubstr("line 6, column 5: pool m of provider p is defined again"),
                          HasSubstr("label a of pool m of provider p is defined again")));
}

}  // namespace

}  // namespace nodepool::config
