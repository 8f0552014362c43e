"""Images of the builder in AWS: the three import methods, faults, deletion, leaks."""
import json
import os
import re
import subprocess

import pytest
from nodepool_helpers import BIN
from services import wait_for

from aws_images import BUCKET, MEBIBYTE, PROVIDER, AwsImages, make_file

# How many calls of an upload, and of a deletion, the builder is killed at; 0: at each of them.
KILLS = int(os.environ.get("NODEPOOL_TEST_AWS_KILLS", "2"))
METHODS = ("snapshot", "image", "ebs-direct")


@pytest.fixture
def file(tmp_path):
    """Data, zeros that are written, a hole, and an end within a block."""
    path = make_file(tmp_path / "image", 3 * MEBIBYTE + 1000, {0: 700_000, 2 * MEBIBYTE + 5: 10, 3 * MEBIBYTE: 1000})
    with open(path, "r+b") as file:
        file.seek(MEBIBYTE)
        file.write(bytes(MEBIBYTE // 2))
    return path


@pytest.fixture
def images(aws_site, file):
    return AwsImages(aws_site, file)


def with_method(aws_site, file, method: str, image: dict | None = None, **settings) -> AwsImages:
    return AwsImages(aws_site, file, {"import-method": method, **(image or {})}, **settings)


def upload_tags(images) -> dict[str, str]:
    (build, number), = images.uploads(provider=PROVIDER)
    return {"nodepool_build_id": build, "nodepool_upload_id": number, "nodepool_provider_name": PROVIDER}


# AWS-80
@pytest.mark.parametrize("method", METHODS)
def test_the_record_says_how_far_an_upload_has_come(aws_site, file, method):
    words = ["writing the snapshot, "] if method == "ebs-direct" else ["sending the file, ", "import task import-"]
    if method == "ebs-direct":
        aws_site.account.set(ebs_complete_ms=15000)
    else:
        aws_site.account.set(import_ms=25000)
    images = with_method(aws_site, file, method)
    config = images.config()
    images.builder(config)

    def progress():
        rows = json.loads(images.installation.tool("image-list", "--detail", "--json", config=config).stdout)
        return rows[0]["progress"] or "" if rows else ""

    for word in words:
        wait_for(lambda: progress().startswith(word), f"the list says {word}", 60)
    _, record = images.ready()
    assert "progress" not in record


# AWS-59 AWS-60 AWS-61 AWS-63 AWS-76
@pytest.mark.parametrize("method", METHODS)
def test_an_image_is_what_the_file_is_and_carries_its_tags(aws_site, file, method):
    images = with_method(aws_site, file, method, {"tags": {"made": True}, "architecture": "x86_64"})
    builder = images.builder()
    image_id, record = images.ready()
    assert record["external_name"].startswith("debian-") and record["format"] == "raw"
    image = images.image(image_id)
    assert image.state == "available"
    attempt = image.tags["nodepool_attempt"]
    assert re.fullmatch("[0-9a-f]{32}", attempt)
    tags = {**upload_tags(images), "nodepool_attempt": attempt, "made": "True"}
    assert image.tags == tags and images.owned("snapshot")[image.snapshot]["tags"] == tags
    images.assert_equal(image.snapshot)
    images.await_only(image_id)
    assert (image.size, image.type) == ((1, "gp2") if method == "image" else (1, "gp3"))
    if method != "image":
        assert image.name == record["external_name"]
    if method != "ebs-direct":
        task, = images.owned(f"import-{method}").values()
        assert task["tags"] == tags
        assert aws_site.account.count("PutObject") == 1
    else:
        assert aws_site.account.count("PutSnapshotBlock") == 4, "blocks of zeros are not sent"
    assert f"Upload of {record['external_name']} to ec2" in builder.output()


# AWS-62 AWS-63
@pytest.mark.parametrize("method", ("snapshot", "ebs-direct"))
def test_volume_and_metadata_service_are_as_configured(aws_site, file, method):
    images = with_method(aws_site, file, method, {"imds-support": "v2.0", "volume-size": 7, "volume-type": "gp3",
                                                  "iops": 4000, "throughput": 300})
    images.builder()
    image = images.image(images.ready()[0])
    assert image.imds == "v2.0"
    assert (image.size, image.type, image.iops, image.throughput) == (7, "gp3", 4000, 300)


# AWS-59
def test_an_import_waits_for_others_only_with_a_time_out(aws_site, file, images):
    account = aws_site.account
    account.fault(action="ImportSnapshot", error={"code": "ResourceCountLimitExceeded", "message": "too many"}, count=1)
    del images.settings["image-import-timeout"]
    builder = images.builder()
    wait_for(lambda: "ResourceCountLimitExceeded" in builder.output(), "the upload fails", 60)
    images.ready()
    assert account.count("ImportSnapshot") == 2 and account.count("PutObject") == 2


# AWS-64
@pytest.mark.parametrize("method", ("snapshot", "image"))
def test_a_failing_import_is_reported_and_tried_again(aws_site, file, method):
    aws_site.account.set(import_fail=1)
    images = with_method(aws_site, file, method)
    builder = images.builder()
    image_id, _ = images.ready()
    assert "Disk validation failed" in builder.output()
    images.await_only(image_id)
    assert aws_site.account.count("PutObject") == 2


# AWS-65
def test_faults_of_blocks_repeat_only_the_block(aws_site, file):
    images = with_method(aws_site, file, "ebs-direct")
    account = aws_site.account
    for fault in ({"error": {"code": "RequestThrottledException", "message": "slow", "status": 400}},
                  {"error": {"code": "InternalServerException", "message": "no", "status": 500}},
                  {"error": {"code": "ValidationException", "message": "no", "status": 400}},
                  {"drop": "before"}, {"drop": "after"}):
        account.fault(service="ebs", action="PutSnapshotBlock", count=1, **fault)
    account.fault(service="ebs", action="StartSnapshot", drop="after", count=1)
    images.builder()
    image_id, _ = images.ready()
    images.assert_equal(images.image(image_id).snapshot)
    images.await_only(image_id)
    assert account.count("PutSnapshotBlock") == 4 + 5 and account.count("RegisterImage") == 1


# AWS-65
def test_a_snapshot_that_fails_is_removed_and_the_cause_is_logged(aws_site, file):
    images = with_method(aws_site, file, "ebs-direct")
    aws_site.account.fault(service="ebs", action="CompleteSnapshot", raw={"status": 202, "body": '{"Status": "error"}'}, count=1)
    builder = images.builder()
    image_id, _ = images.ready()
    assert "its state is error" in builder.output()
    images.await_only(image_id)


# AWS-66
def test_a_large_file_goes_in_parts_and_faults_repeat_only_their_part(aws_site, tmp_path):
    file = make_file(tmp_path / "large", 100 * MEBIBYTE, {20 * MEBIBYTE: 5 * MEBIBYTE})
    images = AwsImages(aws_site, file)
    account = aws_site.account
    account.fault(service="s3", action="UploadPart", error={"code": "SlowDown", "message": "slow", "status": 503}, count=1)
    account.fault(service="s3", action="UploadPart", error={"code": "InternalError", "message": "no", "status": 500}, count=1)
    account.fault(service="s3", action="UploadPart", drop="after", count=1)
    account.fault(service="s3", action="CreateMultipartUpload", drop="after", count=1)
    account.fault(service="s3", action="CompleteMultipartUpload", drop="after", count=1)
    images.builder()
    image_id, _ = images.ready()
    images.assert_equal(images.image(image_id).snapshot)
    images.await_only(image_id)
    parts = account.calls("UploadPart")
    assert len(parts) == 13 + 3 and account.count("PutObject") == 0


# AWS-66
def test_parts_of_a_killed_builder_are_removed(aws_site, tmp_path):
    images = AwsImages(aws_site, make_file(tmp_path / "large", 100 * MEBIBYTE, {}))
    account = aws_site.account
    account.fault(service="s3", action="UploadPart", skip=4, delay_ms=1500)
    builder = images.builder()
    wait_for(lambda: account.count("UploadPart") > 4, "some parts are sent", 60)
    builder.kill()
    assert images.uploads_in_parts()
    account.control("/faults", method="DELETE")
    images.builder()
    image_id, _ = images.ready()
    images.await_only(image_id)


# AWS-67
@pytest.mark.parametrize("method", METHODS)
def test_an_image_that_is_not_configured_any_more_is_deleted(aws_site, file, method):
    images = with_method(aws_site, file, method)
    images.builder()
    images.await_only(images.ready()[0])
    images.config(images=False)
    images.await_nothing()
    wait_for(lambda: images.tree.children("/nodepool/images") == [], "the records are removed")
    assert aws_site.account.refused("DeleteSnapshot") == []


# AWS-78
@pytest.mark.parametrize("image_format", ("vmdk", "vhd", "ova"))
def test_the_file_goes_out_in_the_configured_format_and_to_the_hook(aws_site, file, tmp_path, image_format):
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/told\n')
    hook.chmod(0o755)
    images = AwsImages(aws_site, file, **{"image-format": image_format, "post-upload-hook": str(hook)})
    images.builder()
    image_id, _ = images.ready()
    call, = aws_site.account.calls("ImportSnapshot")
    assert call["params"]["DiskContainer.Format"] == image_format
    assert call["params"]["DiskContainer.UserBucket.S3Key"].endswith(f".{image_format}")
    provider, told, path = (tmp_path / "told").read_text().split()
    assert (provider, told) == (PROVIDER, image_id) and path.endswith(f".{image_format}")


# AWS-78
def test_a_hook_that_fails_leaves_no_image(aws_site, file, tmp_path):
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\n[ -e {tmp_path}/once ] && exit 0\ntouch {tmp_path}/once\nexit 3\n")
    hook.chmod(0o755)
    images = with_method(aws_site, file, "ebs-direct", **{"post-upload-hook": str(hook)})
    images.builder()
    image_id, _ = images.ready()
    images.await_only(image_id)


# AWS-77
def test_operators_see_images_that_nobody_knows(aws_site, images):
    images.builder()
    image_id, _ = images.ready()
    account = aws_site.account
    known = images.image(image_id)
    account.call("RegisterImage", Name="alien", RootDeviceName="/dev/sda1", BlockDeviceMappings=[
        {"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": known.snapshot}}], TagSpecifications=[
        {"ResourceType": "image", "Tags": [{"Key": "nodepool_build_id", "Value": "other"}]}])
    done = subprocess.run([BIN / "nodepool", "-c", images.config(), "alien-image-list"], env=account.environment(),
                          capture_output=True, text=True, timeout=60, check=True)
    assert "alien" in done.stdout and image_id not in done.stdout, done.stdout


def tags_of(build: str, upload: str, provider: str = PROVIDER) -> list[dict]:
    return [{"Key": "nodepool_provider_name", "Value": provider}, {"Key": "nodepool_build_id", "Value": build},
            {"Key": "nodepool_upload_id", "Value": upload}]


def register(account, snapshot: str, name: str, tags: list[dict]):
    specifications = [{"ResourceType": "image", "Tags": tags}] if tags else []
    account.call("RegisterImage", Name=name, RootDeviceName="/dev/sda1", TagSpecifications=specifications,
                 BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": snapshot}}])


def make_snapshot(account, tags: list[dict]) -> str:
    """As somebody else does, of a volume of an instance."""
    if not account.volumes():
        account.run_instance()
        wait_for(lambda: account.volumes(), "the instance has a volume")
    specifications = [{"ResourceType": "snapshot", "Tags": tags}] if tags else []
    known = set(entry["id"] for entry in account.control("/resources?kind=snapshot")["snapshot"])
    account.call("CreateSnapshot", VolumeId=account.volumes()[0].id, TagSpecifications=specifications)
    made = [entry["id"] for entry in account.control("/resources?kind=snapshot")["snapshot"] if entry["id"] not in known][0]
    wait_for(lambda: any(entry["id"] == made and entry["state"] == "completed"
                         for entry in account.control("/resources?kind=snapshot")["snapshot"]), "the snapshot is complete")
    return made


# AWS-56
def test_leaked_images_snapshots_and_objects_are_deleted_by_the_rules(aws_site, file):
    images = AwsImages(aws_site, file, **{"max-leaked-share": 100})
    account = aws_site.account
    config = images.config()
    builder = images.builder(config)
    image_id, _ = images.ready()
    (build, number), = images.uploads(provider=PROVIDER)
    # The tree gives the next upload a number, and removes its record again.
    path = images.tree.zk.create(f"/nodepool/images/debian/builds/{build}/providers/{PROVIDER}/images/", b"{}", sequence=True)
    leaked = path.rsplit("/", 1)[1]
    images.tree.zk.delete(path)
    snapshot = make_snapshot(account, tags_of(build, leaked))
    register(account, snapshot, "leaked", tags_of(build, leaked))
    other = make_snapshot(account, tags_of(build, leaked, "another"))
    register(account, other, "of another provider", tags_of(build, leaked, "another"))
    lost = make_snapshot(account, tags_of("of-a-lost-tree", number))
    for key, tags in (("debian-1600000000.raw", tags_of(build, leaked)), ("debian-1600000001.raw", tags_of(build, number)),
                      ("debian-1600000002.raw", []), ("notes-1600000000.raw", tags_of(build, leaked))):
        images.s3.put_object(Bucket=BUCKET, Key=key, Body=b"x", Tagging="&".join(f"{tag['Key']}={tag['Value']}" for tag in tags))
    builder.stop()
    launcher = images.launcher(config)
    wait_for(lambda: snapshot not in images.owned("snapshot"), "the leaked snapshot is deleted", 60)
    wait_for(lambda: "debian-1600000000.raw" not in images.objects(), "the leaked object is deleted", 60)
    assert sorted(images.objects()) == ["debian-1600000001.raw", "debian-1600000002.raw", "notes-1600000000.raw"]
    assert account.count("GetObjectTagging") == 3, "tags are read once for each content"
    names = {images.image(one).name for one in images.owned("image")}
    assert "leaked" not in names and "of another provider" in names and image_id in images.owned("image")
    assert {other, lost} <= set(images.owned("snapshot"))
    assert "Deleting leaked ami" in launcher.output() and "Deleting leaked snapshot" in launcher.output()
    assert account.refused("DeleteSnapshot") == account.refused("DeregisterImage") == []


# AWS-56 AWS-66
def test_uploads_in_parts_of_a_day_ago_are_aborted(aws_site, images):
    account = aws_site.account
    for key in ("debian-1600000000.raw", "notes.txt"):
        images.s3.create_multipart_upload(Bucket=BUCKET, Key=key)
    launcher = images.launcher(images.config())
    wait_for(lambda: account.count("ListMultipartUploads") >= 2, "two sweeps have seen them")
    assert images.uploads_in_parts() == ["debian-1600000000.raw", "notes.txt"]
    account.control("/clock", {"offset_s": 2 * 86400})
    wait_for(lambda: "Removing the parts of debian-1600000000.raw" in launcher.output(), "a later sweep finds one", 90)
    wait_for(lambda: account.count("AbortMultipartUpload") == 1, "it is aborted")
    account.control("/clock", {"offset_s": 0})
    wait_for(lambda: images.uploads_in_parts() == ["notes.txt"], "the other one is left")


# AWS-56 AWS-57 AWS-58
@pytest.mark.parametrize("method", ("snapshot", "image"))
def test_what_an_import_made_without_tags_gets_those_of_its_task_and_is_deleted(aws_site, file, method):
    """Two imports are given up by a builder that cannot reach EC2; the tasks go on and their results are nobody's."""
    images = with_method(aws_site, file, method, **{"max-leaked-share": 100})
    account = aws_site.account
    make_snapshot(account, [])
    foreign = set(images.owned("snapshot"))
    kind = {"snapshot": "DescribeImportSnapshotTasks", "image": "DescribeImportImageTasks"}[method]
    account.fault(action=kind, error={"code": "UnauthorizedOperation", "message": "no", "status": 403}, count=4)
    account.fault(service="s3", action="DeleteObject", error={"code": "AccessDenied", "message": "no", "status": 403}, count=1)
    config = images.config()
    images.builder(config)
    launcher = images.launcher(config)
    image_id, _ = images.ready()
    wait_for(lambda: "Deleting leaked snapshot" in launcher.output(), "the result of the lost task is found", 60)
    images.await_left(lambda: {"image": [image_id], "object": [], "parts": [],
                               "snapshot": sorted(foreign | {images.image(image_id).snapshot})})


def has_struck(account) -> bool:
    return any(call.get("fault") for call in account.calls())


def kill_at(images, call: int, begin) -> bool:
    """Kills the builder at a call that AWS carries out without its answer being seen; False: there are not so many."""
    account = images.account
    account.control("/log", method="DELETE")
    account.fault(action="*", skip=call, count=1, drop="after")
    builder, has_ended = begin()
    wait_for(lambda: has_struck(account) or has_ended(), "the call is made, or the work is done", 120, 0.01)
    did_strike = has_struck(account)
    builder.kill()
    account.control("/faults", method="DELETE")
    return did_strike


def calls_to_kill_at(most: int) -> list[int]:
    return list(range(most)) if KILLS == 0 else [number * most // (KILLS + 1) + 1 for number in range(KILLS)]


# AWS-56 AWS-66
@pytest.mark.parametrize("method", METHODS)
def test_a_builder_killed_during_an_upload_leaves_nothing(aws_site, tmp_path, method):
    file = make_file(tmp_path / "image", 20 * MEBIBYTE, {0: 4 * MEBIBYTE})
    for call in calls_to_kill_at(25):
        aws_site.begin_anew(f"anew-{call}")
        images = with_method(aws_site, file, method)

        def begin():
            builder = images.builder()
            return builder, lambda: any(one["state"] == "ready" for one in images.uploads(provider=PROVIDER).values())

        did_strike = kill_at(images, call, begin)
        builder = images.builder()
        image_id, _ = images.ready()
        images.await_only(image_id)
        builder.stop()
        if not did_strike:
            break


# AWS-67
@pytest.mark.parametrize("method", METHODS)
def test_a_builder_killed_during_a_deletion_leaves_nothing(aws_site, tmp_path, file, method):
    for call in calls_to_kill_at(8):
        aws_site.begin_anew(f"anew-{call}")
        images = with_method(aws_site, file, method)
        builder = images.builder()
        images.await_only(images.ready()[0])

        def begin():
            images.config(images=False)
            return builder, lambda: images.tree.children("/nodepool/images") == []

        did_strike = kill_at(images, call, begin)
        builder = images.builder(images.config(images=False))
        images.await_nothing()
        wait_for(lambda: images.tree.children("/nodepool/images") == [], "the records are removed", 60)
        builder.stop()
        if not did_strike:
            break
