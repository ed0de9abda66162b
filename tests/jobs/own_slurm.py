"""A Slurm of one's own on this host: munged, slurmctld and several slurmd, each of them a
"node" with the host's cores, with all their files in one folder and ended with the test.

Raises NoSlurm, saying why, where there is none or it does not start (packages slurm-wlm
and munge of Debian and Ubuntu; control groups are not needed, nor to be root).
"""
import ctypes
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time

CONFIG = """
ClusterName=tests
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# Jobs that are queued again wait for as long as credentials live.
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
TmpFS={folder}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin={task}
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MinJobAge=600
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] \
CPUs={cores} RealMemory={memory}
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
"""

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue"]
ENDED = ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY",
         "BOOT_FAIL", "DEADLINE", "PREEMPTED"]
PR_SET_PDEATHSIG = 1


class NoSlurm(Exception):
    pass


def with_parent():
    """Of a child: end with this process, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_ports(count):
    """Numbers of ports in a row that nobody listens at now."""
    for first in range(20000 + secrets.randbelow(20000), 60000, count):
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
            return list(range(first, first + count))
        except OSError:
            pass
        finally:
            for s in sockets:
                s.close()
    raise NoSlurm("no free ports")


class OwnSlurm:
    """`with OwnSlurm(folder, nodes=2) as slurm:`; commands run with slurm.env."""

    def __init__(self, folder, nodes):
        paths = "/usr/sbin:/usr/local/sbin:" + os.environ["PATH"]
        missing = [p for p in PROGRAMS if not shutil.which(p, path=paths)]
        if missing:
            raise NoSlurm("not installed: " + ", ".join(missing))
        # Domain sockets have short names only.
        self.folder = folder if len(folder) < 60 else tempfile.mkdtemp(prefix="slurm-")
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o755)
        self.nodes = [f"n{k + 1}" for k in range(nodes)]
        self.daemons = []
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("SLURM", "SBATCH", "SRUN", "PMI"))}
        self.env.update(SLURM_CONF=os.path.join(self.folder, "slurm.conf"), PATH=paths)

    def path(self, name):
        return os.path.join(self.folder, name)

    def __enter__(self):
        try:
            self.configure()
            self.start_munge()
            self.daemon("slurmctld", "-D")
            for node in self.nodes:
                self.daemon("slurmd", "-D", "-N", node)
            self.wait_for("nodes that are idle", self.all_idle)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if len(self.daemons) > 1:
            subprocess.run(["scancel", "--user", getpass.getuser()], env=self.env,
                           stderr=subprocess.DEVNULL, timeout=30)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.kill_rest()

    def kill_rest(self):
        """Processes of jobs and their steps are nobody's children: known by SLURM_CONF."""
        mark = f"SLURM_CONF={self.env['SLURM_CONF']}".encode()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as f:
                    if mark in f.read().split(b"\0"):
                        os.kill(int(name), signal.SIGKILL)
            except OSError:
                pass

    def configure(self):
        ports = free_ports(1 + len(self.nodes))
        cores = len(os.sched_getaffinity(0))
        binds = cores == os.cpu_count()
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        for name in ["state", *self.nodes]:
            os.makedirs(self.path(name), exist_ok=True)
        with open(self.path("slurm.conf"), "w") as f:
            f.write(CONFIG.format(
                ports=ports, first=ports[1], last=ports[-1], nodes=len(self.nodes),
                user=getpass.getuser(), folder=self.folder, host=socket.gethostname(),
                cores=max(2, cores), memory=memory,
                task="task/affinity" if binds and cores > 1 else "task/none"))
        version = "v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1"
        with open(self.path("cgroup.conf"), "w") as f:
            f.write(f"CgroupPlugin=cgroup/{version}\nIgnoreSystemd=yes\n")

    def start_munge(self):
        key = self.path("munge.key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as f:
            f.write(secrets.token_bytes(128))
        self.daemon("munged", "--foreground", f"--key-file={key}",
                    f"--socket={self.path('munge.socket')}",
                    f"--pid-file={self.path('munge.pid')}",
                    f"--log-file={self.path('munge.log')}",
                    f"--seed-file={self.path('munge.seed')}")
        self.wait_for("munged", lambda: os.path.exists(self.path("munge.socket")))

    def daemon(self, *command):
        log = open(self.path(f"{command[0]}-{len(self.daemons)}.out"), "w")
        self.daemons.append(subprocess.Popen(
            command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=with_parent))
        log.close()

    def wait_for(self, what, done, seconds=30):
        end = time.monotonic() + seconds
        while not done():
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    raise NoSlurm(f"{daemon.args[0]} ends: {self.last_error()}")
            if time.monotonic() > end:
                raise NoSlurm(f"no {what} after {seconds} s: {self.last_error()}")
            time.sleep(0.1)

    def last_error(self):
        """The newest complaint in the daemons' logs."""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(self.path(name), errors="replace") as f:
                    lines = [s for s in f if "error" in s.lower() or "fatal" in s]
                if lines and "slurmctld" not in name:
                    return lines[-1].strip()
        return "see " + self.folder

    def all_idle(self):
        states = self.run("sinfo", "-h", "-N", "-o", "%T").stdout.split()
        return states == ["idle"] * len(self.nodes)

    def run(self, *command, cwd=None, **more):
        return subprocess.run(command, env={**self.env, **more}, cwd=cwd, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def facts(self, job):
        """What Slurm knows of a job: JobState, Restarts, ExitCode ..."""
        words = self.run("scontrol", "show", "job", str(job)).stdout.split()
        return dict(w.split("=", 1) for w in words if "=" in w)

    def wait_job(self, job, seconds):
        """Its facts when it has ended, or {} when it has not in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            facts = self.facts(job)
            if facts.get("JobState") in ENDED:
                return facts
            time.sleep(0.3)
        return {}
