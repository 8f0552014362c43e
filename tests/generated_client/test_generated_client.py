"""A client for TypeScript, made from /api/v1/openapi.json, asks for nodes and gives them back."""
import json
import os
import pathlib
import shutil

from lease_client import LeaseSite
from nodepool_helpers import ROOT, run
from web_client import get

PACKAGES = ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.0"]
SETTINGS = {"compilerOptions": {"strict": True, "target": "es2022", "module": "nodenext", "types": ["node"]},
            "files": ["round_trip.ts"]}


def project(folder: pathlib.Path) -> pathlib.Path:
    """A folder with the generator, the compiler and the program."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    (folder / "tsconfig.json").write_text(json.dumps(SETTINGS))
    run("npm", "install", "--silent", "--no-fund", "--no-audit", *PACKAGES, cwd=folder)
    shutil.copy(pathlib.Path(__file__).with_name("round_trip.ts"), folder)
    return folder


# OPENAPI-3
def test_a_generated_client_goes_from_the_request_to_the_return(site):
    leases = LeaseSite(site)
    token = leases.token("ci", "--scope", "request")
    port = leases.start()
    folder = project(ROOT / "build/generated-client")
    (folder / "openapi.json").write_text(get(port, "/api/v1/openapi.json")[2])
    binaries = folder / "node_modules/.bin"
    run(binaries / "openapi-typescript", "openapi.json", "-o", "api.ts", cwd=folder)
    run(binaries / "tsc", "-p", ".", cwd=folder)
    seen = json.loads(run("node", "round_trip.js", cwd=folder,
                          env={**os.environ, "SERVER": f"http://127.0.0.1:{port}", "TOKEN": token}))
    assert seen.pop("address") and seen.pop("keys") >= 0
    assert seen == {"is_same": True, "state": "held", "renewed": True, "listed": True, "in_use": True, "refused": 409,
                    "reason": seen["reason"], "counts": ["small", "small"]}
    assert "is not one of its nodes" in seen["reason"]
    assert leases.client("ci").list() == [] or {lease["state"] for lease in leases.client("ci").list()} == {"ending"}
