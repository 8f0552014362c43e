#include "config/logging/log_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/testing/test_environment.h"

namespace nodepool::config {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using HandlerKind = log::Handler::Kind;

class LogFileTest : public ::testing::Test {
 protected:
  Expected<log::Setup> Read(const std::string& text, const std::string& name) {
    std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return ReadLogFile(path);
  }
  std::string ErrorOf(const std::string& text, const std::string& name = "log.yaml") {
    Expected<log::Setup> setup = Read(text, name);
    return setup ? "" : setup.error().message().substr(folder_.string().size() + 1);
  }

  testing::TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
};

// configuration.md 14, the deployed kind of file; D-53
TEST_F(LogFileTest, Ini) {
  Expected<log::Setup> setup = Read(R"(# comment
[loggers]
keys=root, np
[handlers]
keys=out,file,rotating,timed,sys,none
[formatters]
keys=line
[logger_root]
level=WARNING
handlers=out
[logger_np]
level=DEBUG
handlers=file,rotating
qualname=nodepool
propagate=0
[handler_out]
class=StreamHandler
level=INFO
formatter=line
args=(sys.stdout,)
[handler_file]
class=handlers.WatchedFileHandler
formatter=line
args=('/var/log/np.log', 'a')
[handler_rotating]
class=logging.handlers.RotatingFileHandler
args=("/var/log/r.log", 'a', 1000, 5)
[handler_timed]
class=handlers.TimedRotatingFileHandler
kwargs={'filename': '/var/log/t.log', 'when': 'w6', 'backupCount': 3}
[handler_sys]
class=handlers.SysLogHandler
args=(('log.example.org', 1514), handlers.SysLogHandler.LOG_LOCAL3)
[handler_none]
class=logging.NullHandler
args=()
[formatter_line]
class=nodepool.logconfig.MultiLineFormatter
format=%(asctime)s
  %(name)s: %(message)s
)",
                                    "logging.conf");
  ASSERT_TRUE(setup) << setup.error().message();
  EXPECT_EQ(setup->loggers.at("").level, log::Level::kWarning);
  EXPECT_THAT(setup->loggers.at("").handlers, ElementsAre("out"));
  EXPECT_EQ(setup->loggers.at("nodepool").level, log::Level::kDebug);
  EXPECT_FALSE(setup->loggers.at("nodepool").is_passed_on);
  EXPECT_EQ(setup->handlers.at("out").kind, HandlerKind::kStdout);
  EXPECT_EQ(setup->handlers.at("out").level, log::Level::kInfo);
  const log::LogFile& file = setup->handlers.at("file").file;
  EXPECT_EQ(file.path, "/var/log/np.log");
  EXPECT_TRUE(file.is_watched);
  EXPECT_EQ(setup->handlers.at("rotating").file.max_bytes, 1000);
  EXPECT_EQ(setup->handlers.at("rotating").file.backups, 5);
  const log::LogFile& timed = setup->handlers.at("timed").file;
  EXPECT_EQ(timed.turn, log::LogFile::Turn::kWeekday);
  EXPECT_EQ(timed.weekday, 6);
  EXPECT_EQ(timed.backups, 3);
  const log::Syslog& syslog = setup->handlers.at("sys").syslog;
  EXPECT_EQ(syslog.address, "log.example.org");
  EXPECT_EQ(syslog.port, 1514);
  EXPECT_EQ(syslog.facility, 19);
  EXPECT_EQ(setup->handlers.at("none").kind, HandlerKind::kNull);
  log::Record record{log::Level::kInfo, "x", {}, "one\ntwo"};
  EXPECT_THAT(setup->handlers.at("out").format.Format(record, {}), EndsWith("x:   two"));
  EXPECT_EQ(setup->handlers.at("none").format.Format(record, {}), "one\ntwo");
}

TEST_F(LogFileTest, Dictionary) {
  for (const char* name : {"log.yaml", "log.yml", "log.json"}) {
    Expected<log::Setup> setup = Read(R"json({"version": 1, "disable_existing_loggers": false,
      "formatters": {"line": {"format": "%(name)s"}, "json": {"()": "nodepool.logconfig.JsonFormatter"}},
      "handlers": {"out": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "json"},
                   "err": {"class": "logging.StreamHandler", "level": 40},
                   "sys": {"class": "logging.handlers.SysLogHandler", "address": "/dev/log", "facility": "daemon"},
                   "journal": {"class": "systemd.journal.JournalHandler", "SYSLOG_IDENTIFIER": "np"}},
      "loggers": {"nodepool": {"level": "DEBUG", "handlers": ["out", "err"], "propagate": true}},
      "root": {"level": "ERROR", "handlers": ["sys"]}})json",
                                      name);
    ASSERT_TRUE(setup) << setup.error().message();
    EXPECT_EQ(setup->handlers.at("out").kind, HandlerKind::kStdout);
    EXPECT_EQ(setup->handlers.at("err").kind, HandlerKind::kStderr);
    EXPECT_EQ(setup->handlers.at("err").level, log::Level::kError);
    EXPECT_EQ(setup->handlers.at("sys").syslog.port, 0);
    EXPECT_EQ(setup->handlers.at("sys").syslog.facility, 3);
    EXPECT_EQ(setup->handlers.at("journal").kind, HandlerKind::kJournal);
    EXPECT_EQ(setup->handlers.at("journal").journal.address, "/run/systemd/journal/socket");
    EXPECT_EQ(setup->handlers.at("journal").journal.identifier, "np");
    EXPECT_TRUE(setup->loggers.at("nodepool").is_passed_on);
    log::Record record{log::Level::kInfo, "x", {}, "text"};
    EXPECT_THAT(setup->handlers.at("out").format.Format(record, {}), StartsWith(R"({"time":)"));
  }
}

TEST_F(LogFileTest, AYamlNameMayHoldIni) {
  EXPECT_THAT(ErrorOf("just words\n"), HasSubstr("expected [section] or key = value"));
}

TEST_F(LogFileTest, ErrorsNameTheirPlace) {  // D-53
  EXPECT_EQ(ReadLogFile("/none/log.yaml").error().message(),
            "Unable to read logging config file at /none/log.yaml");
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("log.yaml: line 1, column 1: expected version: 1"));
  EXPECT_THAT(ErrorOf("version: 1\nfilters: {}\n"), HasSubstr("filters is not supported"));
  EXPECT_THAT(
      ErrorOf("version: 1\nhandlers:\n  a:\n    class: x.SMTPHandler\n"),
      HasSubstr("line 4, column 12: x.SMTPHandler is not supported as a handler; there are StreamHandler"));
  EXPECT_THAT(ErrorOf("version: 1\nhandlers: {a: {class: FileHandler}}"), HasSubstr("a filename is missing"));
  EXPECT_THAT(ErrorOf("version: 1\nhandlers: {a: {class: NullHandler, filters: [x]}}"),
              HasSubstr("NullHandler has no filters"));
  EXPECT_THAT(ErrorOf("version: 1\nhandlers: {a: {class: StreamHandler, stream: ext://my.stream}}"),
              HasSubstr("expected sys.stdout or sys.stderr"));
  EXPECT_THAT(ErrorOf("version: 1\nhandlers: {a: {class: StreamHandler, formatter: x}}"),
              HasSubstr("there is no formatter x"));
  EXPECT_THAT(ErrorOf("version: 1\nformatters: {a: {format: '%(x)s'}}"), HasSubstr("\"x\" is not a field"));
  EXPECT_THAT(ErrorOf("version: 1\nformatters: {a: {style: '{'}}"), HasSubstr("only % is supported"));
  EXPECT_THAT(ErrorOf("version: 1\nroot: {level: LOUD}"), HasSubstr("LOUD is not a level"));
  EXPECT_THAT(ErrorOf("version: 1\nroot: {handlers: [x]}"), HasSubstr("there is no handler of this name"));
  for (const char* when : {"Q", "w7", "W"}) {
    EXPECT_THAT(
        ErrorOf(
            std::string("version: 1\nhandlers: {a: {class: TimedRotatingFileHandler, filename: /x, when: ") +
            when + "}}"),
        HasSubstr("expected S, M, H, D, midnight or W0 to W6"));
  }
}

TEST_F(LogFileTest, ErrorsInIniNameTheirPlace) {
  auto error_of = [this](const std::string& text) { return ErrorOf(text, "log.ini"); };
  std::string head = "[loggers]\nkeys=root\n[logger_root]\nhandlers=a\n[handlers]\nkeys=a\n[handler_a]\n";
  EXPECT_EQ(error_of(head + "class=StreamHandler\n"), "");
  EXPECT_THAT(error_of("x=1"), HasSubstr("log.ini: line 1, column 1: the first line has to be a [section]"));
  EXPECT_THAT(error_of("[a]\nx=1\nx=2"), HasSubstr("line 3, column 1: \"x\" is in its section twice"));
  EXPECT_THAT(error_of("[a]\n[a]"), HasSubstr("is in the file twice"));
  EXPECT_THAT(error_of("[a"), HasSubstr("expected ]"));
  EXPECT_THAT(error_of("[loggers]\nkeys=\n[handlers]\nkeys=\n"), HasSubstr("root is missing"));
  EXPECT_THAT(error_of("[loggers]\nkeys=root\n"), HasSubstr("the section [handlers] is missing"));
  EXPECT_THAT(error_of(head + "class=FileHandler\nargs=(os.getenv('X'),)\n"),
              HasSubstr("line 9, column 16: nothing is called here"));
  EXPECT_THAT(error_of(head + "class=StreamHandler\nargs=('a', 'b', 'c')\n"), HasSubstr("at most 1 values"));
  for (const char* args : {"(", "('a", "(1 2)", "{'a' 1}", "({},)x", "(1.2.3,)", "('\\x41',)", "(%,)"}) {
    EXPECT_NE(error_of(head + "class=FileHandler\nargs=" + args + "\n"), "") << args;
  }
  EXPECT_NE(error_of(head + "class=FileHandler\nargs=" + std::string(100'000, '(') + "\n"), "");
}

}  // namespace
}  // namespace nodepool::config
