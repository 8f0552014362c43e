"""What docs/drivers/aws.md says agrees with the driver."""
import json
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/drivers/aws.md").read_text()
# Called without a right of the account.
OF_STS = {"AssumeRole", "AssumeRoleWithWebIdentity"}
# Wanted for tags in other calls.
BESIDE = {"ec2:CreateTags"}
TAGS_OF_OBJECTS = {"s3:PutObjectTagging"}
# Where the right is not called like the operation.
RIGHTS_OF_S3 = {"ListObjectsV2": "ListBucket", "ListMultipartUploads": "ListBucketMultipartUploads",
                "CreateMultipartUpload": "PutObject", "UploadPart": "PutObject", "CompleteMultipartUpload": "PutObject"}


def operations(path: str) -> set[str]:
    """That a class of calls names."""
    return set(re.findall(r'(?:Request|Send|Delete|ReadPage<\w+>)\(\s*"([A-Z]\w+)"', (ROOT / path).read_text()))


def indented_block(beginning: str) -> str:
    """The indented block of the page whose first line begins so."""
    lines = PAGE.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    " + beginning))
    block = []
    for line in lines[first:]:
        if line and not line.startswith("    "):
            break
        block.append(line[4:])
    return "\n".join(block)


def test_the_policy_has_exactly_the_calls_of_the_driver():
    called = set()
    for path in (ROOT / "src/drivers/aws").rglob("*.cc"):
        if path.stem.endswith("_test") or path.parent.name == "testing":
            continue
        source = path.read_text()
        called |= {f"ec2:{action}" for action in re.findall(r'Query(?: query)?\("(\w+)"\)', source) if action not in OF_STS}
        called |= {f"servicequotas:{action}" for action in re.findall(r"ServiceQuotasV\d+\.(\w+)", source)}
    assert len(called) >= 8
    called |= {f"ebs:{operation}" for operation in operations("src/drivers/aws/api/ebs.cc")}
    of_bucket = {f"s3:{RIGHTS_OF_S3.get(operation, operation)}" for operation in operations("src/drivers/aws/api/s3.cc")}
    everywhere, bucket = json.loads(indented_block("{"))["Statement"]
    assert everywhere["Action"] == sorted(called | BESIDE)
    assert bucket["Action"] == sorted(of_bucket | TAGS_OF_OBJECTS)


def test_the_example_is_valid(site):
    providers = yaml.safe_load(indented_block("providers:"))["providers"]
    config = site.config(providers=providers)
    done = site.tool("config-validate", config=config)
    assert done.returncode == 0 and "WARNING" not in done.stdout + done.stderr, done.stdout + done.stderr
