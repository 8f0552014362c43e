"""The certificate of a web server on this host, and what its clients need."""
import os
import pathlib
import ssl
import subprocess

HOST = "localhost"
# Without it Python 3.13 trusts no authority.
AUTHORITY = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")


class WebTls:
    """An authority and a pair of files in a new folder. `kind` is openssl's: "ec" or "rsa:2048"."""

    def __init__(self, folder: pathlib.Path, kind: str = "ec"):
        folder.mkdir()
        self.folder, self.kind = folder, kind
        self.authority, self.cert, self.key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
        (folder / "names").write_text(f"subjectAltName=DNS:{HOST},DNS:{os.uname().nodename}\nauthorityKeyIdentifier=keyid\n")
        self._openssl("req", "-x509", *self._new_key("ca.key"), "-out", self.authority, "-days", "2", "-subj", "/CN=test",
                      *AUTHORITY)
        for made, place in zip(self.make_pair("first"), (self.cert, self.key)):
            made.rename(place)

    def _openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], cwd=self.folder, check=True, capture_output=True)

    def _new_key(self, name: str) -> list[str]:
        kind = [self.kind, "-pkeyopt", "ec_paramgen_curve:prime256v1"] if self.kind == "ec" else [self.kind]
        return ["-newkey", *kind, "-nodes", "-keyout", name]

    def make_pair(self, name: str, days: int = 30) -> tuple[pathlib.Path, pathlib.Path]:
        """A certificate of this common name, not used yet, and its key."""
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        self._openssl("req", *self._new_key(key.name), "-out", "request.pem", "-subj", f"/CN={name}")
        self._openssl("x509", "-req", "-in", "request.pem", "-CA", self.authority, "-CAkey", "ca.key", "-CAcreateserial",
                      "-out", cert, "-days", days, "-extfile", "names")
        return cert, key

    @property
    def settings(self) -> dict:
        return {"cert": str(self.cert), "key": str(self.key), "ca": str(self.authority)}

    def client(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)
