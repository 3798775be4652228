"""Results, kept as {"load|phase": {target: [values]}}, and the tables and gates made of them."""
import statistics

# (load, phase, at least, or share of tmpfs)
LOCAL_GATES = [
    ("tree", "dir create", 15000, None),
    ("tree", "file create", 13000, None),
    ("tree", "file read", 80000, None),
    ("flat 2 ranks", "dir stat", None, 0.75),
    ("flat 2 ranks", "file stat", None, 0.75),
]
EFS_MODEL_FILES = 8000
EFS_MODEL = {"git clone": (90.0, 20), "git status warm": (3.10, 12), "rm -rf": (50.0, 40)}
FORK_SECONDS_MAX = 0.005
FORK_FILES = 100000
# Published for such a file system against EFS; wanted of us against the best peer at GATE_DELAY.
GATE_DELAY = "0.5"
NETWORK_GATES = {
    ("flat", "dir create"): 45, ("flat", "file create"): 45, ("flat", "file read"): 30,
    ("flat 2 ranks", "dir stat"): 626, ("flat 2 ranks", "file stat"): 625,
    ("git", "git clone"): 2.5, ("git", "git status warm"): 6.9, ("git", "rm -rf"): 13,
}
TIMED_LOADS = ("git", "copy")  # seconds; others are operations a second


class Results:
    """Values of all rounds, by load, phase and target."""

    def __init__(self, saved=None):
        self.values = saved or {}

    def add(self, load, target, phases):
        for phase, value in phases.items():
            self.values.setdefault(f"{load}|{phase}", {}).setdefault(target, []).append(value)

    def merge(self, values):
        for key, row in values.items():
            for target, more in row.items():
                self.values.setdefault(key, {}).setdefault(target, []).extend(more)

    def middle(self, load, phase, target):
        values = self.values.get(f"{load}|{phase}", {}).get(target)
        return statistics.median(values) if values else None

    def rows(self):
        return [key.split("|") for key in self.values]

    def targets(self):
        """In the order of their first measurement."""
        return list(dict.fromkeys(t for row in self.values.values() for t in row))


def cell(value):
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) and value < 1000 else f"{value:,.0f}"


def print_local(results, names, repository_files, forks, out):
    print("load\tphase\t" + "\t".join(names), file=out)
    for load, phase in results.rows():
        print(f"{load}\t{phase}\t" + "\t".join(cell(results.middle(load, phase, n)) for n in names),
              file=out)
    print("\ngate (agentfs fsync)\twanted\tmeasured\tgate", file=out)
    for load, phase, least, share in LOCAL_GATES:
        got = results.middle(load, phase, "agentfs fsync")
        reference = results.middle(load, phase, "tmpfs")
        if got is None or (share and reference is None):
            continue
        want = least if least else share * reference
        print(f"{load}: {phase}\t{want:,.0f}/s\t{got:,.0f}/s\t{verdict(got >= want)}", file=out)
    for phase, (seconds, factor) in EFS_MODEL.items():
        got = results.middle("git", phase, "agentfs fsync")
        if got is None or repository_files != EFS_MODEL_FILES:
            continue  # the model's seconds are for that many files
        print(f"{phase} against the EFS-like model ({seconds:g} s for {EFS_MODEL_FILES:,} files)\t"
              f"{factor}x\t{seconds / got:.1f}x\t{verdict(seconds / got >= factor)}", file=out)
    for files, (fork, start) in forks.items():
        gate = f"\t{verdict(fork - start < FORK_SECONDS_MAX)}" if files == FORK_FILES else ""
        print(f"fork of {files:,} files: {fork * 1000:.1f} ms as a command, of which "
              f"{start * 1000:.1f} ms start a program\t< 5 ms\t{(fork - start) * 1000:.1f} ms{gate}",
              file=out)


def verdict(met):
    return "met" if met else "MISSED"


def print_network(results, delay, out):
    """One delay's table: `ours / best peer` is a speed ratio, above 1 where AgentFS is faster."""
    names = results.targets()
    peers = [n for n in names if not n.startswith("agentfs")]
    print("load\tphase\t" + "\t".join(names) + "\tprivate / best peer\twanted\tgate", file=out)
    for load, phase in results.rows():
        line = [load, phase] + [cell(results.middle(load, phase, n)) for n in names]
        ours = results.middle(load, phase, "agentfs private")
        others = [v for v in (results.middle(load, phase, n) for n in peers) if v is not None]
        wanted = NETWORK_GATES.get((load, phase)) if delay == GATE_DELAY else None
        if ours is None or not others:
            line += ["-", "-", "-"]
        else:
            ratio = min(others) / ours if load in TIMED_LOADS else ours / max(others)
            line += [f"{ratio:.1f}x", f"{wanted}x" if wanted else "-",
                     verdict(ratio >= wanted) if wanted else "-"]
        print("\t".join(line), file=out)
