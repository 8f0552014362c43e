"""docs/reference/logging.md and the source say the same (operations.md 8.3, 8.4)."""
import re

from nodepool_helpers import ROOT
from services import wait_for
from images import ImageSite, image

PAGE = (ROOT / "docs/reference/logging.md").read_text()
SOURCE = "\n".join(path.read_text() for path in sorted((ROOT / "src").rglob("*"))
                   if path.suffix in (".cc", ".h") and not re.search("_(test|for_test)[.]", path.name))


def in_the_source() -> set[str]:
    """A regular expression for the names of each logger: a value stands for anything."""
    loggers = re.findall(r'(?:(?:[Ll]ogger_?|[Ll]og_|Worker)(?: \w+)?[({]|kLogger =)\s*(?:\w+, )?(?:log::Logger\(|fmt::format\()*'
                         r'"(nodepool[^"]*)"( \+)?', SOURCE)
    return {re.escape(name).replace(r"\{\}", ".+") + (".+" if more else "") for name, more in loggers}


def on_the_page() -> set[str]:
    return {re.sub("<.*?>", "x", name) for name in re.findall(r"^\| (?:\*\*)?`(nodepool[^`]*)`(?:\*\*)? \| [^|]*\|$", PAGE, re.M)}


# operations.8.3
def test_every_logger_is_on_the_page_and_in_the_source():
    source, page = in_the_source(), on_the_page()
    assert len(source) > 30
    assert [name for name in page if not any(re.fullmatch(logger, name) for logger in source)] == [], "nobody uses them"
    assert [logger for logger in source if not any(re.fullmatch(logger, name) for name in page)] == [], "not on the page"


# operations.8.4
def test_every_line_of_the_page_is_in_the_source():
    lines = re.findall(r"^\| `nodepool[^|]*\| (\w+) \| `([^`]*)`", PAGE, re.M)
    assert len(lines) == 18
    for level, text in lines:
        text = re.sub("<.*?>", "{}", text)
        # A fault of a provider is an error when it is new (launcher/provider_manager.h).
        call = rf'(\.{level.capitalize()}\(|\.Failed\(\s*fmt::format\()\s*"'
        assert re.search(call + re.escape(text), SOURCE), text


# operations.8.4
def test_lines_that_operators_look_for(site):
    images = ImageSite(site)
    builder = images.builder(images.config([image()], [images.provider()]))
    build, number = images.wait_upload()
    site.tool("image-build", "debian", config=site.folder / "nodepool-one.yaml", check=True)
    images.wait_build(known=[build])
    external_id = images.uploads()[(build, number)]["external_id"]
    for line in ["DEBUG nodepool.zk.ZooKeeperClient: ZooKeeper connection: CONNECTED",
                 "INFO nodepool.builder.BuildWorker.0: Building image debian",
                 "INFO nodepool.builder.BuildWorker.0: Running ",
                 f"INFO nodepool.builder.BuildWorker.0: Logging to {images.log_dir()}/debian-{build}.log",
                 "INFO nodepool.builder.BuildWorker.0: DIB image debian is built",
                 f"INFO nodepool.builder.UploadWorker.0: Image build debian-{build} (external_id {external_id}) in fake-cloud is ready",
                 "INFO nodepool.builder.BuildWorker.0: Manual build request for image debian"]:
        wait_for(lambda: f" {line}" in builder.output(), line)
    launcher = site.launcher()
    tree = site.tree()
    tree.wait_request(tree.add_request(["small"]), "fulfilled")
    for line in ["INFO nodepool.NodePool: Nodepool launcher ", "INFO nodepool.NodePool: Statsd not configured",
                 "DEBUG nodepool.zk.ZooKeeperClient: ZooKeeper connection: CONNECTED"]:
        wait_for(lambda: f" {line}" in launcher.output(), line)
