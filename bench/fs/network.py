"""Two network namespaces with a wire between them on which every packet is late by a stated time.

`agentfs-wire` (wire.cc) is the wire. With a delay of 0 there is one namespace, where client and
server meet on loopback. Needs root; each namespace has its own ports, so nothing that runs on the
machine is in the way.
"""
import os
import shutil
import subprocess
import time

SERVER_ADDRESS = "10.77.91.1"
CLIENT_ADDRESS = "10.77.91.2"


class NetworkError(Exception):
    """One sentence that says what is missing."""


def run(*argv, **more):
    done = subprocess.run(argv, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def check_possible(build):
    """Raises NetworkError when this machine or this build cannot do it."""
    if os.geteuid() != 0 or not shutil.which("ip") or not os.path.exists("/dev/net/tun"):
        raise NetworkError("--network needs root, iproute2 and /dev/net/tun")
    if not os.path.exists(os.path.join(build, "bin", "agentfs-wire")):
        raise NetworkError(f"build the wire first: tools/build {os.path.basename(build)} agentfs-wire")


class Network:
    """`with Network(build, delay_us) as net`: then server() and client() wrap commands."""

    def __init__(self, build, delay_us):
        self.build, self.delay_us = build, delay_us
        tag = f"afsb{os.getpid() % 100000}"
        self._names = [tag + "s", tag + "c"]
        self._wire = None

    def __enter__(self):
        for name in self._names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        if self.delay_us == 0:
            run("ip", "-n", self._names[0], "addr", "add", SERVER_ADDRESS + "/32", "dev", "lo")
            return self
        program = os.path.join(self.build, "bin", "agentfs-wire")
        self._wire = subprocess.Popen([program, *self._names, str(self.delay_us)],
                                      stdout=subprocess.PIPE, text=True)
        if self._wire.stdout.readline().strip() != "ready":
            raise NetworkError("agentfs-wire did not start")
        for name, address in zip(self._names, (SERVER_ADDRESS, CLIENT_ADDRESS)):
            run("ip", "-n", name, "addr", "add", address + "/24", "dev", "wire0")
            run("ip", "-n", name, "link", "set", "wire0", "up")
        return self

    def __exit__(self, *_):
        if self._wire:
            self._wire.kill()
            self._wire.wait()
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def server(self, *argv):
        return self._inside(self._names[0], argv)

    def client(self, *argv):
        return self._inside(self._names[0 if self.delay_us == 0 else 1], argv)

    @staticmethod
    def _inside(name, argv):
        # Not `ip netns exec`: its mounts would be seen by nobody else.
        return ["nsenter", f"--net=/var/run/netns/{name}", *argv]


def wait_for_port(network, port, seconds=20):
    """Until something listens at the server's address there, seen from the client."""
    end = time.monotonic() + seconds
    probe = network.client("bash", "-c", f"exec 3<>/dev/tcp/{SERVER_ADDRESS}/{port}")
    while subprocess.run(probe, capture_output=True).returncode != 0:
        if time.monotonic() > end:
            raise RuntimeError(f"nothing listens on port {port} after {seconds} s")
        time.sleep(0.05)
