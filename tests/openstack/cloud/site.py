"""A cloud in a folder: started step by step, each of which may have been done before."""
import json
import pathlib
import signal

from cloud import configs
from cloud.processes import Daemons, answers_http, free_ports

HERE = pathlib.Path(__file__).resolve().parent
PLUGINS = HERE / "plugins"
SERVICES = ("keystone", "glance", "placement", "neutron", "nova", "cinder")
PYTHON = "/usr/bin/python3"


class Site:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.clouds_yaml = folder / "clouds.yaml"
        self.daemons = Daemons(folder, {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder / "home"), "LANG": "C.UTF-8", "no_proxy": "*",
            "PYTHONPATH": f"{PLUGINS}:{HERE.parent}", "PYTHONDONTWRITEBYTECODE": "1"})

    def start(self):
        for name in ("run", "log", "home", "etc", "locks", "images", "staging", "glance", "nova", "neutron", "cinder"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        settings = self._settings()
        self._write_configs(settings)
        self._start_database()
        self._once("keystone-schema", self._make_keystone)
        self._start("keystone", settings)
        self._once("identity", lambda: self._fill("identity", settings))
        self._once("schemas", self._make_schemas)
        for name in SERVICES[1:]:
            self._start(name, settings, wait=name == "placement")
        for name in SERVICES:
            self.daemons.wait(name, lambda n=name: answers_http(settings["ports"][n]))
        self._once("resources", lambda: self._fill("resources", settings))

    def stop(self):
        # nova and cinder leave at once for SIGINT; for SIGTERM they wait for their timers.
        for name in reversed(SERVICES):
            self.daemons.stop(name, signal.SIGINT if name in ("nova", "cinder") else signal.SIGTERM, 5)
        self.daemons.stop("database", signal.SIGTERM, 30)

    def _settings(self) -> dict:
        path = self.folder / "settings.json"
        if not path.exists():
            ports = dict(zip(SERVICES, free_ports(len(SERVICES))))
            path.write_text(json.dumps({"folder": str(self.folder), "ports": ports}))
        return json.loads(path.read_text())

    def _write_configs(self, settings: dict):
        for name, text in configs.files(settings).items():
            path = self.folder / "etc" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    def _config(self, service: str) -> pathlib.Path:
        return self.folder / f"etc/{service}/{service}.conf"

    def _once(self, name: str, step):
        done = self.folder / f"run/{name}.done"
        if not done.exists():
            step()
            done.touch()

    def _start_database(self):
        defaults = f"--defaults-file={self.folder / 'etc/database.cnf'}"
        socket = self.folder / "run/db.sock"
        client = ["mariadb", "--no-defaults", "-u", "root", "-S", socket, "-e"]
        self._once("database", lambda: self.daemons.run(
            "database-install", "mariadb-install-db", defaults, "--skip-test-db", "--user=root",
            "--auth-root-authentication-method=normal"))
        self.daemons.start("database", "mariadbd", defaults)

        def answers():
            try:
                self.daemons.run("database-look", *client, "select 1")
                return True
            except RuntimeError:
                return False
        self.daemons.wait("database", answers, 60)
        schemas = ("keystone", "glance", "placement", "neutron", "nova_api", "nova_cell0", "nova", "cinder")
        self.daemons.run("database-make", *client, ";".join(
            f"create database if not exists {name} character set utf8mb3" for name in schemas))

    def _make_keystone(self):
        manage = ["keystone-manage", "--config-file", self._config("keystone")]
        owner = ["--keystone-user", "root", "--keystone-group", "root"]
        url = configs.keystone_url(self._settings())
        self.daemons.run("keystone-schema", *manage, "db_sync")
        self.daemons.run("keystone-keys", *manage, "fernet_setup", *owner)
        self.daemons.run("keystone-credentials", *manage, "credential_setup", *owner)
        self.daemons.run("keystone-bootstrap", *manage, "bootstrap", "--bootstrap-password", configs.PASSWORD,
                         "--bootstrap-region-id", configs.REGION, "--bootstrap-public-url", url,
                         "--bootstrap-internal-url", url, "--bootstrap-admin-url", url)

    def _make_schemas(self):
        for service in SERVICES[1:]:
            self.daemons.run(f"{service}-schema", PYTHON, PLUGINS / "make_schema.py", service, self._config(service))

    def _start(self, service: str, settings: dict, wait: bool = True):
        port = settings["ports"][service]
        self.daemons.start(service, PYTHON, PLUGINS / "serve.py", service, self._config(service), port)
        if wait:
            self.daemons.wait(service, lambda: answers_http(port))

    def _fill(self, stage: str, settings: dict):
        """In a process of its own: the client library reads the environment."""
        self.daemons.run(f"fill-{stage}", PYTHON, "-m", "cloud.contents", stage, self.folder / "settings.json")
