"""Where credentials come from, and how they are replaced."""
import json

import pytest
from services import free_port, wait_for
from web_client import get


WITHOUT_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_CONFIG_FILE": "/nonexistent"}


def keys_used(account, **selection) -> list[str]:
    return [call["key"] for call in account.calls() if all(call.get(name) == value for name, value in selection.items())]


# AWS-68
def test_each_source_of_credentials(aws_site, tmp_path):
    account = aws_site.account
    (tmp_path / "token").write_text("counterpart-web-identity-token")
    metadata = account.variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
    keys = {"AWS_ACCESS_KEY_ID": "AKIACOUNTERPART00002",
            "AWS_SECRET_ACCESS_KEY": "counterpart/secret+key/0000000000000002b"}
    program = tmp_path / "keys"
    program.write_text("#!/bin/sh\necho a warning >&2\ncat <<'E'\n" + json.dumps(
        {"Version": 1, "AccessKeyId": keys["AWS_ACCESS_KEY_ID"],
         "SecretAccessKey": keys["AWS_SECRET_ACCESS_KEY"]}) + "\nE\n")
    program.chmod(0o755)
    (tmp_path / "config").write_text(f"[profile asks]\ncredential_process = {program} --now\n")
    sources = {
        "profile": ({}, {}),
        "environment": ({**WITHOUT_FILES, **keys}, {}),
        "profile with a role": ({}, {"profile-name": "role"}),
        "the named profile wins over the environment": ({**keys, "AWS_SECRET_ACCESS_KEY": "wrong"},
                                                        {"profile-name": "default"}),
        "program": ({**WITHOUT_FILES, "AWS_CONFIG_FILE": tmp_path / "config"}, {"profile-name": "asks"}),
        "web identity": ({**WITHOUT_FILES, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/nodepool",
                          "AWS_WEB_IDENTITY_TOKEN_FILE": tmp_path / "token"}, {}),
        "container": ({**WITHOUT_FILES, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata}/container",
                       "AWS_CONTAINER_AUTHORIZATION_TOKEN": "counterpart-container-token"}, {}),
        "instance metadata": (WITHOUT_FILES, {}),
    }
    for name, (variables, settings) in sources.items():
        done = aws_site.validate_online(account.environment(**variables), **settings)
        assert done.returncode == 0 and "WARNING" not in done.stdout + done.stderr, \
            f"{name}: {done.stdout}{done.stderr}"
        assert account.calls("DescribeInstances"), name
        account.reset()


def test_without_credentials_the_message_says_where_they_were_searched_for(aws_site):
    aws_site.account.set(imds="down")
    done = aws_site.validate_online(aws_site.account.environment(**WITHOUT_FILES))
    output = done.stdout + done.stderr
    assert "there are no AWS credentials" in output and "instance metadata service at http://127.0.0.1" in output


# AWS-76
def test_endpoints_in_the_files(aws_site):
    without = aws_site.account.environment(AWS_ENDPOINT_URL=None)
    assert aws_site.validate_online(without).returncode == 0
    assert aws_site.account.calls("DescribeInstances")
    aws_site.account.reset()
    port = aws_site.account.variables["AWS_ENDPOINT_URL"]
    own = aws_site.account.environment(AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_ENDPOINT_URL_EC2=port)
    assert aws_site.validate_online(own).returncode == 0
    assert aws_site.account.calls("DescribeInstances")


# AWS-69
def test_short_credentials_are_replaced_before_they_expire(aws_site):
    account = aws_site.account
    account.set(imds_credentials_s=6)
    launcher = aws_site.launcher(env=account.environment(**WITHOUT_FILES))
    tree = aws_site.tree()

    def has_used_several():
        held, _ = aws_site.node(tree)
        tree.give_back(held)
        return len(set(keys_used(account, service="ec2"))) >= 3

    wait_for(has_used_several, "the credentials are replaced twice", 120)
    assert account.refused() == []
    assert " WARNING " not in launcher.output()


# AWS-70
def test_a_wrong_secret_is_reported_and_corrected_without_a_restart(aws_site, tmp_path):
    good = (aws_site.account.state / "aws/credentials").read_text()
    file = tmp_path / "credentials"
    file.write_text(good.replace("counterpart/secret", "wrong/secret"))
    env = aws_site.account.environment(AWS_SHARED_CREDENTIALS_FILE=file)
    port = free_port()
    config = aws_site.config(webapp={"listen_address": "127.0.0.1", "port": port})
    launcher = aws_site.launcher(config, env=env, wait=False)
    wait_for(lambda: "AuthFailure" in launcher.output(), "the fault is reported", 60)
    wait_for(lambda: "AuthFailure" in get(port, "/ready")[2], "/ready tells the fault", 30)
    assert get(port, "/ready")[0] == 503
    file.write_text(good)
    tree = aws_site.tree()
    tree.fulfil_timeout = 90
    tree.use(tree.add_request(["small"]))
    assert "wrong/secret" not in launcher.output()


# AWS-71, AWS-79
def test_a_clock_that_is_wrong(aws_site):
    aws_site.account.control("/clock", {"offset_s": 600})
    launcher = aws_site.launcher()
    aws_site.node(aws_site.tree())
    line, = [line for line in launcher.output().splitlines() if "The clock of this host is " in line]
    assert "Describe" in line and "(request id " in line and "Correct the clock" in line
    assert 1 <= len(aws_site.account.refused()) <= 5


# What the provider cannot work with, and what its one line has to say.
FAULTS = {
    "wrong key": ({}, {"AWS_SECRET_ACCESS_KEY": "wrong", "AWS_ACCESS_KEY_ID": "AKIACOUNTERPART00001"},
                  ["401 AuthFailure", "check the key"]),
    "expired token": ({"error": {"code": "ExpiredToken", "message": "The token has expired", "status": 400}}, {},
                      ["400 ExpiredToken", "renew the credentials"]),
    "missing right": ({"error": {"code": "UnauthorizedOperation", "message": "You are not authorized.", "status": 403}},
                      {}, ["403 UnauthorizedOperation", "give the key's user or role this right"]),
    "no XML": ({"raw": {"status": 200, "body": "<p>a login page"}}, {}, ["no XML: a login page", "proxies lead to AWS"]),
    "half an answer": ({"raw": {"status": 200, "body": "<DescribeInstancesResponse><reservationSet><item>"}}, {},
                       ["ends in the middle, after 49 bytes", "proxies lead to AWS"]),
    "no answer": ({"drop": "before"}, {"AWS_MAX_ATTEMPTS": "1"}, ["check the way from this host to AWS"]),
}


def the_line(done) -> str:
    """The one that says why the provider cannot be used; nothing else is said about the call."""
    output = done.stdout + done.stderr
    lines = [line for line in output.splitlines() if "Provider ec2 cannot be used" in line]
    assert len(lines) == 1, output
    assert [line for line in output.splitlines() if "request id " in line and line not in lines] == [], output
    return lines[0]


# AWS-79
@pytest.mark.parametrize("name", FAULTS)
def test_one_clear_line(aws_site, name):
    fault, variables, words = FAULTS[name]
    if fault:
        aws_site.account.fault(action="DescribeInstances", **fault)
    line = the_line(aws_site.validate_online(aws_site.account.environment(**variables)))
    assert all(word in line for word in ["Describe", *words]), line
    ids = [call["request_id"] for call in aws_site.account.refused()]
    # Raw answers are a proxy's, without an id.
    assert bool(ids) == ("(request id " in line) or {"raw", "drop"} & set(fault), line
    assert not ids or "raw" in fault or "drop" in fault or any(f"(request id {one})" in line for one in ids), line


# AWS-79
def test_a_region_that_does_not_exist(aws_site):
    env = aws_site.account.environment(AWS_ENDPOINT_URL=None, AWS_CONFIG_FILE="/nonexistent", AWS_MAX_ATTEMPTS="1")
    line = the_line(aws_site.validate_online(env, **{"region-name": "moon-1"}))
    assert "Describe" in line and "ec2.moon-1.amazonaws.com" in line and "check region-name (moon-1)" in line


# AWS-79
def test_a_launcher_logs_a_refusal_once_although_ids_differ(aws_site):
    account = aws_site.account
    account.fault(action="DescribeInstanceTypes",
                  error={"code": "UnauthorizedOperation", "message": "You are not authorized.", "status": 403})
    launcher = aws_site.launcher(wait=False)
    wait_for(lambda: len(account.refused("DescribeInstanceTypes")) >= 3, "it was tried again", 60)
    lines = [line for line in launcher.output().splitlines() if "UnauthorizedOperation" in line and " DEBUG " not in line]
    assert len(lines) == 1, lines
    assert "DescribeInstanceTypes" in lines[0] and "(request id " in lines[0] and "this right" in lines[0]
