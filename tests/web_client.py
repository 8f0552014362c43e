"""What tests ask of a launcher's web server."""
import urllib.error
import urllib.request


def get(port: int, path: str, **headers) -> tuple[int, dict, str]:
    """Status, headers and body; a `_` in the name of a header stands for a dash."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def web_config(site, port, **settings):
    return site.config(webapp={"listen_address": "127.0.0.1", "port": port}, **settings)
