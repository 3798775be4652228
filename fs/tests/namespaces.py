#!/usr/bin/env python3
"""A server and two clients, each in a network namespace of its own, with partitions and delays:
what the promise table says about several machines, on real interfaces.

Needs root and `ip netns`; exits 77 (skipped) without. A partition is a link that goes down: packets
vanish, nobody is told. Delays come from a relay in this file, since not every kernel has netem.
"""
import fcntl
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

AGENTFS = os.path.join(os.environ.get("FLEET_BUILD", "build/dev"), "bin", "agentfs")
LEASE_S = 3
TAG = f"afs{os.getpid() % 10000}"
NET = "10.77.90"


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done


class Namespaces:
    """TAGs holds a bridge; TAGa and TAGb hang on it by a veth pair each."""

    def __enter__(self):
        self.names = [TAG + "s", TAG + "a", TAG + "b"]
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        server = self.names[0]
        run("ip", "-n", server, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", server, "addr", "add", f"{NET}.1/24", "dev", "br0")
        run("ip", "-n", server, "link", "set", "br0", "up")
        for i, name in enumerate(self.names[1:], 2):
            run("ip", "-n", server, "link", "add", "to" + name[-1], "type", "veth",
                "peer", "name", "eth0", "netns", name)
            run("ip", "-n", server, "link", "set", "to" + name[-1], "master", "br0", "up")
            run("ip", "-n", name, "addr", "add", f"{NET}.{i}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            run("ip", "netns", "del", name, check=False)

    def partition(self, client, on):
        run("ip", "-n", self.names[0], "link", "set", "to" + client, "down" if on else "up")
        if not on:  # neighbours have to find each other again
            probe = inside(client, "bash", "-c", f"exec 3<>/dev/tcp/{NET}.1/7440")
            if not eventually(lambda: run(*probe, check=False).returncode == 0):
                raise SystemExit("the link does not come up again")


def inside(name, *command):
    # Not `ip netns exec`: its mounts would be seen by nobody else.
    return ["nsenter", f"--net=/var/run/netns/{TAG}{name}", *command]


class Daemon:
    def __init__(self, command, ready, log):
        self.log = log
        self.process = subprocess.Popen(command, stdout=open(log, "a"), stderr=subprocess.STDOUT)
        for _ in range(600):
            if ready in self.text():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit(f"{' '.join(command)} did not start: {self.text()}")

    def text(self):
        with open(self.log) as file:
            return file.read()


class Mount:
    count = 0

    def __init__(self, place, client, token, *options, port=7440, host=f"{NET}.1"):
        Mount.count += 1
        self.folder = os.path.join(place, f"mnt{Mount.count}")
        os.mkdir(self.folder)
        command = inside(client, AGENTFS, "mount", "--foreground", f"agentfs://{host}:{port}/main",
                         self.folder, "--token-file", token, *options)
        self.daemon = Daemon(command, "mounted on", os.path.join(place, f"log{Mount.count}"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, sync=False):
        with open(self.path(name), "w") as file:
            file.write(text)
            if sync:
                file.flush()
                os.fsync(file.fileno())

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def fails(self, call, *arguments):
        try:
            call(*arguments)
            return False
        except OSError:
            return True

    def end(self):
        run("umount", "-l", self.folder, check=False)
        try:
            self.daemon.process.wait(10)
        except subprocess.TimeoutExpired:
            self.daemon.process.kill()
            self.daemon.process.wait()


class Relay(threading.Thread):
    """Forwards bytes `delay` seconds late each way. Lives in the server's namespace."""

    def __init__(self, delay):
        super().__init__(daemon=True)
        self.delay = delay
        self.ready = threading.Event()

    def run(self):
        # A thread may enter a network namespace by itself.
        descriptor = os.open(f"/var/run/netns/{TAG}s", os.O_RDONLY)
        os.setns(descriptor) if hasattr(os, "setns") else setns(descriptor)
        listener = socket.socket()
        listener.bind((f"{NET}.1", 0))
        listener.listen(8)
        self.port = listener.getsockname()[1]
        self.ready.set()
        while True:
            client, _ = listener.accept()
            server = socket.create_connection((f"{NET}.1", 7440))
            for one, other in ((client, server), (server, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.forward, args=(one, other), daemon=True).start()

    def forward(self, source, target):
        waiting = []  # (when, bytes)
        while True:
            timeout = max(0, waiting[0][0] - time.monotonic()) if waiting else 1
            ready, _, _ = select.select([source], [], [], timeout)
            try:
                if ready:
                    data = source.recv(1 << 16)
                    waiting.append((time.monotonic() + self.delay, data))
                    if not data:
                        time.sleep(self.delay)
                while waiting and waiting[0][0] <= time.monotonic():
                    data = waiting.pop(0)[1]
                    if not data:
                        target.shutdown(socket.SHUT_WR)
                        return
                    target.sendall(data)
            except OSError:
                return


def setns(descriptor):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def eventually(holds, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


failures = []


def claim(text, holds):
    print(("ok    " if holds else "WRONG ") + text, flush=True)
    if not holds:
        failures.append(text)


def shared_mounts(net, place, token):
    a, b = Mount(place, "a", token), Mount(place, "b", token)
    a.write("f", "from a")
    claim("what a wrote is what b reads, at once", b.read("f") == "from a")
    b.write("f", "from b")
    claim("and the other way round", a.read("f") == "from b")
    with open(a.path("f")) as mine, open(b.path("f")) as other:
        fcntl.flock(mine, fcntl.LOCK_EX)
        taken = a.fails(fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        claim("a lock of a keeps b out", taken)
    net.partition("a", True)
    began = time.monotonic()
    b.write("f", "while a is away")
    claim("a mount that is cut off holds others up for no more than 7 s",
          time.monotonic() - began < 7)
    time.sleep(max(0, 6 - (time.monotonic() - began)))
    stale = not a.fails(a.read, "f") and a.read("f") == "from b"
    claim("and shows nothing of the past after its lease", not stale)
    net.partition("a", False)
    b.write("g", "b goes on")
    a.end()
    again = Mount(place, "a", token)
    claim("a fresh mount of a sees everything",
          again.read("f") == "while a is away" and again.read("g") == "b goes on")
    again.end()
    b.end()


def private_mounts(net, place, store, token):
    a = Mount(place, "a", token, "--private", "--journal", place + "/ja")
    a.write("seen", "1", sync=True)
    net.partition("a", True)
    a.write("unseen", "2")
    claim("a holder that is cut off works on while its lease lasts", a.read("unseen") == "2")
    began = time.monotonic()
    b = Mount(place, "b", token, "--private", "--steal", "--journal", place + "/jb")
    took = time.monotonic() - began
    claim(f"another one gets the lease within its time ({took:.1f} s)", took < 2 * LEASE_S + 2)
    b.write("seen", "written by b", sync=True)
    claim("the one without a lease can neither read nor write",
          a.fails(a.read, "seen") and a.fails(a.write, "late", "x"))
    net.partition("a", False)

    def forks():
        return run(AGENTFS, "list", store).stdout

    claim("what nobody had seen becomes a fork when it is back",
          eventually(lambda: "main.rescue-" in forks()))
    claim("the one that was fenced stays so", a.fails(a.write, "late", "x"))
    b.write("more", "b goes on", sync=True)
    a.end()
    b.end()
    fork = next(w for w in forks().split() if w.startswith("main.rescue-"))
    different = run(AGENTFS, "diff", store, "main", fork, check=False).stdout
    claim("the fork can be compared with the workspace", "A /unseen" in different)


def short_partitions(net, place, token):
    a = Mount(place, "a", token, "--private", "--journal", place + "/js")
    for i in range(3):
        net.partition("a", True)
        for k in range(20):
            a.write(f"s{i}-{k}", "x")
        time.sleep(0.8)
        net.partition("a", False)
        a.write(f"synced{i}", "x", sync=True)
    a.end()
    b = Mount(place, "b", token, "--private", "--journal", place + "/jt")
    there = all(os.path.exists(b.path(f"s{i}-{k}")) for i in range(3) for k in range(20))
    claim("partitions shorter than the lease are noticed by nobody", there)
    b.end()


def delays(place, token):
    relay = Relay(0.01)
    relay.start()
    relay.ready.wait()
    took = {}
    for kind, options in (("shared", []), ("private", ["--private", "--journal", place + "/jd"])):
        mount = Mount(place, "a", token, *options, port=relay.port)
        began = time.monotonic()
        for i in range(100):
            os.mkdir(mount.path(f"{kind}{i}"))
        took[kind] = time.monotonic() - began
        mount.end()
    claim(f"10 ms each way: 100 folders take a shared mount a round trip each ({took['shared']:.2f} s)",
          took["shared"] >= 2.0)
    claim(f"and a private one none ({took['private']:.2f} s)", took["private"] < 1.0)


def main():
    if os.geteuid() != 0 or not shutil.which("ip") or not os.path.exists("/dev/fuse"):
        print("skipped: needs root, ip netns and /dev/fuse")
        return 77
    if run("ip", "netns", "add", TAG + "x", check=False).returncode != 0:
        print("skipped: no network namespaces here")
        return 77
    run("ip", "netns", "del", TAG + "x")
    with tempfile.TemporaryDirectory(prefix="agentfs-net") as place, Namespaces() as net:
        store, token = place + "/store", place + "/token"
        run(AGENTFS, "format", store)
        with open(token, "w") as file:
            file.write(run(AGENTFS, "token", "--tls", store).stdout)
        server = Daemon(inside("s", AGENTFS, "serve", store, "--listen", f"{NET}.1:7440", "--tls",
                               "--lease-seconds", str(LEASE_S)), "port 7440", place + "/server.log")
        try:
            shared_mounts(net, place, token)
            private_mounts(net, place, store, token)
            short_partitions(net, place, token)
            delays(place, token)
        finally:
            for mount in range(1, Mount.count + 1):
                run("umount", "-l", f"{place}/mnt{mount}", check=False)
            server.process.terminate()
            server.process.wait(20)
        claim("the store is whole", run(AGENTFS, "fsck", store, check=False).returncode == 0)
        if failures:
            print(server.text())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
