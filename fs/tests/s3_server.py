#!/usr/bin/env python3
"""An S3 store by other hands (PyPI moto) on 127.0.0.1 for tests of s3://, which fails every Nth
request and refuses what is not signed as botocore would sign it. Says its port in the file PORT_FILE.

    fs/tests/s3_server.py PORT_FILE [N]     makes a virtual environment in build/oracles/s3 first

While the file PORT_FILE.hold exists, every PUT stands still: with "half" in it when half of the body has
been read, with "stored" when the object is stored and nobody has been told. PORT_FILE.held appears when
one does. What stands still goes on when the file is gone. With "slow" in the file each PUT takes nearly as
long as a client waits, and those of every other object fail then.
"""
import itertools
import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["moto[server]==5.0.28"]
KEY, SECRET = "AKIDTEST", "s3cret/of+the+test"


def enter_environment():
    """Runs this script again in a Python that has the packages."""
    if os.environ.get("AGENTFS_S3_INSIDE"):
        return
    home = ROOT / "build" / "oracles" / "s3"
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (home / "ready").touch()
    os.execve(python, [str(python), *sys.argv], dict(os.environ, AGENTFS_S3_INSIDE="1"))


enter_environment()
import boto3  # noqa: E402
from botocore.auth import S3SigV4Auth  # noqa: E402
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402
from moto.server import DomainDispatcherApplication, create_backend_app  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402


def signature_is_right(environ):
    """Whether the request's signature is what botocore makes of the same request."""
    given = environ.get("HTTP_AUTHORIZATION", "")
    fields = dict(part.strip().split("=", 1) for part in given.partition(" ")[2].split(",") if "=" in part)
    if not given.startswith("AWS4-HMAC-SHA256 ") or "Signature" not in fields:
        return False
    key, _, region, service, _ = fields["Credential"].split("/")
    url = "http://" + environ["HTTP_HOST"] + environ["RAW_URI"]
    request = AWSRequest(environ["REQUEST_METHOD"], url)
    for name in fields["SignedHeaders"].split(";"):
        variable = name.upper().replace("-", "_")
        request.headers[name] = environ.get("HTTP_" + variable) or environ.get(variable, "")
    request.context["timestamp"] = environ["HTTP_X_AMZ_DATE"]
    auth = S3SigV4Auth(Credentials(KEY, SECRET), service, region)
    canonical = auth.canonical_request(request)
    return key == KEY and auth.signature(auth.string_to_sign(request, canonical), request) == fields["Signature"]


class Recorded:
    """A body whose first half was read already."""

    def __init__(self, first, rest):
        self.first, self.rest = first, rest

    def read(self, size=-1):
        if 0 <= size <= len(self.first):
            out, self.first = self.first[:size], self.first[size:]
            return out
        first, self.first = self.first, b""
        return first + self.rest.read(size - len(first) if size >= 0 else -1)


def slow(name, seen):
    """Returns late, whether to serve it."""
    time.sleep(3.8)
    return seen.setdefault(name, len(seen)) % 2 == 0


def stand_still(app, environ, hold, mode):
    """Returns when the hold is over, and what to answer if that is known already."""
    answer = None
    if mode == "half":
        half = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]) // 2)
        environ["wsgi.input"] = Recorded(half, environ["wsgi.input"])
    else:
        answer = b"".join(app(environ, lambda *_: None))
    hold.with_suffix(".held").touch()
    while hold.exists():
        time.sleep(0.02)
    return answer


def faulty(app, every, hold):
    count = itertools.count(1)
    seen = {}

    def serve(environ, start_response):
        if not signature_is_right(environ):
            print("refused", environ["REQUEST_METHOD"], environ["RAW_URI"], file=sys.stderr, flush=True)
            start_response("403 Forbidden", [])
            return [b"<Error><Code>SignatureDoesNotMatch</Code></Error>"]
        number = next(count)
        if every and number % every == 0:
            if number % (2 * every) == 0:  # done, and the answer is lost
                b"".join(app(environ, lambda *_: None))
            start_response("503 Slow Down", [])
            return [b"<Error><Code>SlowDown</Code></Error>"]
        if environ["REQUEST_METHOD"] == "PUT" and hold.exists() and hold.read_text() == "slow":
            hold.with_suffix(".held").touch()
            if not slow(environ["RAW_URI"], seen):
                start_response("503 Slow Down", [])
                return [b"<Error><Code>SlowDown</Code></Error>"]
        elif environ["REQUEST_METHOD"] == "PUT" and hold.exists():
            answer = stand_still(app, environ, hold, hold.read_text())
            if answer is not None:
                start_response("200 OK", [])
                return [answer]
        return app(environ, start_response)

    return serve


def main():
    every = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    app = DomainDispatcherApplication(create_backend_app)
    ready = faulty(app, every, pathlib.Path(sys.argv[1] + ".hold"))
    server = make_server("127.0.0.1", 0, lambda *call: serve(*call), threaded=True)
    serve = app  # while the bucket is made
    threading.Thread(target=server.serve_forever).start()
    boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server.server_port}", region_name="us-east-1",
                 aws_access_key_id=KEY, aws_secret_access_key=SECRET).create_bucket(Bucket="packs")
    serve = ready
    beside = pathlib.Path(sys.argv[1] + ".new")
    beside.write_text(str(server.server_port))
    beside.rename(sys.argv[1])


main()
