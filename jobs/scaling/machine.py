"""What machine, program and libraries a study ran on: system.json.

Its fields are those that the astroCAMP community benchmark protocol (v0.1, section 5.1)
asks a submission to disclose. What cannot be found out is null. No names of hosts or
users are kept.
"""
import glob
import json
import os
import platform
import re
import shutil
import subprocess

RAPL = "/sys/class/powercap/intel-rapl:0/energy_uj"


def output_of(command):
    """Standard output of a command, or "" when there is no such command."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def field(text, name):
    """Value of "name: value" in the output of lscpu and its like, or None."""
    found = re.search(rf"^\s*{re.escape(name)}:\s*(.+?)\s*$", text, re.M)
    return found.group(1) if found else None


def number(text):
    found = re.search(r"[\d.]+", text or "")
    return float(found.group()) if found else None


def count(text, name):
    """Whole number of "name: value", or None."""
    value = number(field(text, name))
    return None if value is None else int(value)


def cpus_of_cores():
    """A hardware thread of each core that this process may use."""
    allowed = os.sched_getaffinity(0)
    cores = {}
    for line in output_of(["lscpu", "-p=CPU,CORE,SOCKET"]).splitlines():
        if line[:1].isdigit() and int(line.split(",")[0]) in allowed:
            cpu, *core = line.split(",")
            cores.setdefault(tuple(core), int(cpu))
    return sorted(cores.values()) or sorted(allowed)


def cores_here():
    """Cores, not hardware threads, that this process may use."""
    return len(cpus_of_cores())


def cpus():
    text = output_of(["lscpu"])
    megahertz = [float(v) for v in re.findall(r"^cpu MHz\s*: ([\d.]+)",
                                              read("/proc/cpuinfo"), re.M)]
    return {"model": field(text, "Model name"),
            "sockets": count(text, "Socket(s)"),
            "cores_usable": cores_here(),
            "threads_per_core": count(text, "Thread(s) per core"),
            "numa_nodes": count(text, "NUMA node(s)"),
            "clock_mhz_now": max(megahertz) if megahertz else None,
            "clock_mhz_max": number(field(text, "CPU max MHz")),
            "l3_cache": field(text, "L3 cache"),
            "virtual_machine": field(text, "Hypervisor vendor") is not None}


def gpus():
    text = output_of(["nvidia-smi", "--format=csv,noheader,nounits",
                      "--query-gpu=name,memory.total,clocks.max.sm,driver_version"])
    rows = [[v.strip() for v in line.split(",")] for line in text.splitlines() if line]
    return [{"model": r[0], "memory_mib": number(r[1]), "clock_mhz_max": number(r[2]),
             "driver": r[3]} for r in rows if len(r) == 4]


def read(path):
    try:
        with open(path, errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def memory_gb():
    kilobytes = number(field(read("/proc/meminfo"), "MemTotal"))
    return round(kilobytes * 1024 / 1e9, 2) if kilobytes else None


def storage(folder):
    """Kind of file system that holds the folder, such as ext4 or lustre."""
    lines = output_of(["df", "--output=fstype", folder]).split()
    return lines[-1] if len(lines) > 1 else None


def interconnect(nodes):
    """Fast networks of this node; ranks of one node talk through its memory."""
    adapters = sorted(os.path.basename(p) for p in glob.glob("/sys/class/infiniband/*"))
    rates = sorted({read(p).strip() for p in
                    glob.glob("/sys/class/infiniband/*/ports/*/rate")} - {""})
    return {"nodes": nodes, "adapters": adapters, "rates": rates,
            "used": "shared memory only" if nodes == 1 else "network"}


def system():
    release = read("/etc/os-release")
    name = re.search(r'^PRETTY_NAME="?([^"\n]+)', release, re.M)
    return {"name": name.group(1) if name else platform.system(),
            "kernel": re.match(r"[\d.]*", platform.release()).group(),
            "architecture": platform.machine()}


def program(binary):
    lines = output_of([binary, "--version"]).splitlines() + ["", "", ""]
    launcher = output_of(["mpirun", "--version"]).splitlines()
    return {"name": "tessera", "version": lines[0].replace("tessera ", ""),
            "compiler": lines[1].replace("built with ", ""),
            "libraries": lines[2].replace("using ", ""),
            "launcher": launcher[0] if launcher else None}


def power_method():
    """How the program reads energy here: see base/profile/tess_meter.h."""
    ways = []
    if os.access(RAPL, os.R_OK):
        ways.append("processors: RAPL through powercap")
    if shutil.which("nvidia-smi"):
        ways.append("GPUs: NVML energy counters")
    return {"method": "; ".join(ways) or None, "sampling_hz": 10 if ways else None,
            "measured": "processor packages and GPUs; not memory, network or cooling"
            if ways else "nothing: this machine's counters cannot be read"}


def describe(binary, folder, nodes, carbon):
    """The content of system.json; `carbon` in g CO2e/kWh or None."""
    return {"cpu": cpus(), "gpu": gpus(), "memory_gb": memory_gb(),
            "storage": {"file_system": storage(folder),
                        "state": "data set in the page cache: read once beforehand"},
            "interconnect": interconnect(nodes), "operating_system": system(),
            "imaging_code": program(binary), "power": power_method(),
            "carbon_intensity": {"g_co2e_per_kwh": carbon,
                                 "source": "given by --carbon" if carbon else None}}


def lines(value):
    """JSON of a value, each of its parts on a line."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f" {json.dumps(v)}" for v in value) + "\n]"
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}"
                                  for k, v in value.items()) + "\n}"
    return json.dumps(value)


def write_json(path, content):
    """A line for each thing of the outer two levels. Under another name first: an
    interrupted study leaves no half file."""
    with open(path + ".new", "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {lines(v)}"
                                   for k, v in content.items()) + "\n}\n")
    os.replace(path + ".new", path)
