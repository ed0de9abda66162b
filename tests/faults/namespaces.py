"""Nodes of a cluster that are network namespaces of one machine, joined by a bridge.

A script that wants nodes calls `enter()` first: it starts itself again in a network
namespace of its own, which holds the bridge. So nothing of the machine changes, and the
kernel removes everything when the last process of a node has ended.
"""
import os
import signal
import subprocess
import sys
import time

from e2e import mpiexec, skip, take_forced

INSIDE = "TESS_TEST_NAMESPACE"  # set in the script that has been started again
NETWORK = "10.77.0"


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.PIPE, text=True)


def may_unshare(words):
    return subprocess.run([*words, "true"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def enter():
    """Goes on in a namespace of this script; skips the test where none can be made."""
    if INSIDE in os.environ:
        return
    try:
        ways = [w for w in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"])
                if may_unshare([*w, "unshare", "--net", "--uts"])]
    except OSError as error:
        skip(f"no unshare: {error}")
    if not ways:
        skip("network namespaces cannot be made here")
    os.execvpe(ways[0][0], [*ways[0], sys.executable, *sys.argv],
               {**os.environ, INSIDE: "1"})


class Nodes:
    """`count` nodes called node0, node1, ...; the launcher runs on node0."""

    def __init__(self, suite, count):
        self.suite, self.holders = suite, []
        try:
            ip("link", "set", "lo", "up")
            ip("link", "add", "switch", "type", "bridge")
            ip("link", "set", "switch", "up")
            for k in range(count):
                self.add(k)
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            skip(f"nodes cannot be made here: {getattr(error, 'stderr', None) or error}")
        self.agent = self.write_agent()

    def add(self, k):
        """A process that holds the namespaces of the node, and the node's link."""
        holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c",
             f"hostname node{k} && echo ready && exec sleep 100000"],
            stdout=subprocess.PIPE, text=True)
        self.holders.append(holder)
        if holder.stdout.readline() != "ready\n":
            raise OSError("no namespace of a host's name")
        ip("link", "add", f"to{k}", "type", "veth", "peer", "name", "link0", "netns",
           str(holder.pid))
        ip("link", "set", f"to{k}", "master", "switch", "up")
        # Open MPI's launcher waits for a lost node until TCP gives up: sooner than usual.
        for words in ("ip link set lo up", f"ip addr add {NETWORK}.{k + 1}/24 dev link0",
                      "ip link set link0 up", "echo 4 >/proc/sys/net/ipv4/tcp_retries2"):
            subprocess.run([*self.entering(k), "sh", "-c", words], check=True,
                           stderr=subprocess.PIPE, text=True)

    def entering(self, k):
        return ["nsenter", "-t", str(self.holders[k].pid), "--net", "--uts", "--"]

    def write_agent(self):
        """What the launcher calls in place of ssh: AGENT HOST WORD..."""
        path = self.suite.path("agent.sh")
        with open(path, "w") as f:
            f.write("#!/bin/sh\nhost=$1\nshift\ncase $host in\n")
            for k in range(len(self.holders)):
                enter_node = " ".join(self.entering(k))
                f.write(f'node{k}) exec {enter_node} sh -c "$*" ;;\n')
            f.write("esac\nexit 1\n")
        os.chmod(path, 0o755)
        return path

    def launcher(self, ranks):
        """The words that start ranks[k] ranks on node k, from node 0."""
        hosts = ",".join(f"node{k}:{n}" for k, n in enumerate(ranks) if n)
        return [*self.entering(0), mpiexec(), "--mca", "plm_rsh_agent", self.agent,
                "--mca", "btl", "tcp,vader,self", "--mca", "btl_tcp_if_include", "link0",
                "--mca", "oob_tcp_if_include", "link0", "--host", hosts,
                "-n", str(sum(ranks))]

    def start(self, words, ranks, err):
        words, env = take_forced(words)
        known = ["-x", "TESS_FORCE"] if "TESS_FORCE" in env else []
        return subprocess.Popen([*self.launcher(ranks), *known, *words], stderr=err,
                                stdout=subprocess.DEVNULL, env=env,
                                start_new_session=True)

    def cut(self, k):
        """The node's link goes down at the switch: the node itself does not see it."""
        ip("link", "set", f"to{k}", "down")

    def join(self, k):
        """The link is up again, and no node remembers that it was not."""
        ip("link", "set", f"to{k}", "up")
        for place in [[], *(self.entering(n) for n in range(len(self.holders)))]:
            while "state UP" not in subprocess.run(
                    [*place, "ip", "-o", "link", "show", "dev", "link0" if place else f"to{k}"],
                    capture_output=True, text=True).stdout:
                time.sleep(0.01)
            subprocess.run([*place, "ip", "neigh", "flush", "all"], check=True,
                           stderr=subprocess.DEVNULL)

    def processes(self, k):
        """The numbers of the processes on a node, beside the one that holds it."""
        found = []
        net = os.readlink(f"/proc/{self.holders[k].pid}/ns/net")
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{name}/ns/net") == net:
                    found.append(int(name))
            except OSError:
                continue
        return sorted(set(found) - {self.holders[k].pid})

    def clear(self):
        """Ends what still runs on the nodes."""
        for k in range(len(self.holders)):
            for pid in self.processes(k):
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()
