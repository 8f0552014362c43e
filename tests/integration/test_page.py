"""The page's files and their headers (http.md 1.6)."""
import gzip
import re
import urllib.request

import pytest

from services import free_port
from web_client import exchange, get, web_config


@pytest.fixture
def web(site):
    port = free_port()
    site.launcher(web_config(site, port))
    return port


# PAGE-7, PAGE-8
def test_the_page_and_all_that_it_names(web):
    status, headers, page = get(web, "/")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=UTF-8"
    names = set(re.findall(r'(?:href|src)="(assets/[^"]+)"', page))
    assert {"assets/main.js", "assets/style.css"} <= names
    seen = set()
    while names:
        name = names.pop()
        seen.add(name)
        status, headers, text = get(web, "/" + name)
        assert status == 200, name
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
        assert headers["Cache-Control"] == "no-cache"
        names |= {f"assets/{module}" for module in re.findall(r"from '\./([^']+)'", text)} - seen
    assert get(web, "/index.html")[0] == get(web, "/assets/none.js")[0] == get(web, "/assets/../main.js")[0] == 404


# PAGE-7, HTTP-7
def test_compressed_and_sent_once(web):
    _, headers, plain = get(web, "/assets/main.js")
    request = urllib.request.Request(f"http://127.0.0.1:{web}/assets/main.js", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.headers["Content-Encoding"] == "gzip" and answer.headers["Vary"] == "Accept-Encoding"
        assert gzip.decompress(answer.read()).decode() == plain
        assert answer.headers["ETag"] != headers["ETag"]
    assert get(web, "/assets/main.js", If_None_Match=headers["ETag"])[0] == 304


def test_head_and_other_methods(web):
    head = exchange(web, b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ") and head.endswith(b"\r\n\r\n")
    head = exchange(web, b"HEAD /api/v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"text/event-stream" in head and head.endswith(b"\r\n\r\n")
    assert exchange(web, b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                    ).startswith(b"HTTP/1.1 405 ")
