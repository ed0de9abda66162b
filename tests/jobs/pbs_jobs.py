#!/usr/bin/env python3
"""jobs/pbs.sh as submit.sh fills it in, where there is no PBS: qsub, qstat and pbsnodes
are stand-ins that say what PBS's manuals say they would. A job that reaches its time
limit is submitted again until its image is there, byte by byte that of an uninterrupted
run. And all scripts of jobs/ as shellcheck sees them.
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../oracle", "../faults"):
    sys.path.insert(0, os.path.join(HERE, folder))

from checkpoints import make_observation
from e2e import BIN, ROOT, SLOWER, Suite, forced, mpi_environment, read_image

JOBS = os.path.join(ROOT, "jobs")
OPTIONS = ["--size", "160,120", "--scale", "25asec", "--reproducible", "--no-psf"]
FORCED = "block-planes=2"  # many checkpoints; jobs that are submitted again keep it

STANDINS = {
    # what was submitted, and with which variables
    "qsub": 'printf "%s\\n" "$*" >>"$STANDIN/submitted"; echo 7.server',
    "qstat": 'echo "Job Id: $2"; echo "    Resource_List.walltime = 00:02:00"',
    "pbsnodes": """cat <<END
node1
     resources_available.mem = 16777216kb
     resources_available.ncpus = 4
node2
     resources_available.mem = 8388608kb
     resources_available.ncpus = 2
END"""}


def make_standins(suite):
    folder = suite.path("bin")
    os.makedirs(folder)
    for name, text in STANDINS.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(f.name, 0o755)
    env = {k: v for k, v in mpi_environment().items() if not k.startswith("SLURM")}
    env.update(PATH=folder + ":" + env["PATH"], STANDIN=suite.work, TESSERA=BIN,
               TESS_FORCE=FORCED)
    return env


def bash(suite, env, *words):
    return subprocess.run(["bash", *map(str, words)], env=env, cwd=suite.work, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=100 * SLOWER)


def submitted(suite):
    try:
        with open(suite.path("submitted")) as f:
            return f.read().splitlines()
    except OSError:
        return []


def check_submit(suite, env, obs):
    name = suite.path("sky map")
    result = bash(suite, env, os.path.join(JOBS, "submit.sh"), "--scheduler", "pbs",
                  "--threads", "2", "--tasks", "1", "--partition", "long", obs, "-o",
                  name, *OPTIONS)
    suite.equal("submit.sh: status", result.returncode, 0)
    script = name + ".job"
    suite.equal("submitted", submitted(suite), [script])
    with open(script) as f:
        text = f.read()
    for line in [r"-N sky_map", r"-q long", r"-l walltime=00:\d\d:00",
                 r"-l select=1:ncpus=2:mpiprocs=1:ompthreads=2:mem=\d+mb"]:
        suite.true(f"submit.sh: {line}", re.search(f"^#PBS {line}$", text, re.M))
    result = bash(suite, env, os.path.join(JOBS, "submit.sh"), "--scheduler", "pbs",
                  "--array", "channels:2", obs, "-o", name, *OPTIONS)
    suite.equal("submit.sh --array: status", result.returncode, 2)
    return script


def check_words(suite, env, obs):
    """TESSERA of several words, as containers need them: for the plan, and in the job."""
    image = suite.path("a.sif")
    with open(image, "w") as f:
        f.write("stands for a container")
    runner = suite.path("bin", "container")
    with open(runner, "w") as f:
        f.write('#!/bin/sh\n[ "$1" = exec ] && [ -f "$2" ] || exit 9\nshift 2\nexec "$@"\n')
    os.chmod(runner, 0o755)
    env = dict(env, TESSERA=f"container exec a.sif {BIN}")
    script = suite.path("words.job")
    result = bash(suite, env, os.path.join(JOBS, "submit.sh"), "--scheduler", "pbs", "--account", "ska",
                  "--threads", "1", "--tasks", "1", obs, "-o", suite.path("words"), *OPTIONS[:4])
    suite.equal("words: submit.sh's status", result.returncode, 0)
    with open(script) as f:
        text = f.read()
    suite.true("words: image and account in the script", image in text and "#PBS -A ska\n" in text)
    job = dict(env, PBS_JOBID="8.server", PBS_O_WORKDIR=suite.work, OMP_NUM_THREADS="1",
               PBS_NODEFILE=suite.path("nodes"), TESSERA_LAUNCH="none")
    del job["TESS_FORCE"], job["TESSERA"]
    result = bash(suite, job, script)
    # qsub's stand-in tells of a time limit that is over at once
    if not suite.true("words: the job runs in the container", result.returncode == 75 and
                      f" container exec {image} {BIN} image " in result.stdout):
        print(result.stdout[-2000:])
    result = bash(suite, dict(env, TESSERA="none such"), os.path.join(JOBS, "submit.sh"),
                  "--scheduler", "pbs", obs, "-o", suite.path("words"), *OPTIONS)
    suite.true("words: no such program", result.returncode == 2 and "no program none" in result.stdout)
    result = bash(suite, env, os.path.join(JOBS, "submit.sh"), "--dry-run", "--scheduler", "slurm",
                  "--cores", "2", "--node-memory", "8000", "--account", "ska", "--qos", "high",
                  "--threads", "1", "--tasks", "1", obs, "-o", suite.path("words"), *OPTIONS)
    suite.true("words: account and quality of Slurm", "#SBATCH --account=ska\n" in result.stdout and
               "#SBATCH --qos=high\n" in result.stdout)


def make_planner(suite, name, line):
    """A stand-in for tessera whose plan is tessera's own but for the estimated time: `line`
    of shell sets `time` from the number of ranks and threads."""
    program = suite.path("bin", name)
    with open(program, "w") as f:
        f.write(f"""#!/bin/bash
set -o pipefail
ranks=${{OMPI_COMM_WORLD_SIZE:-${{PMI_SIZE:-1}}}} threads=1 word=
for word; do [ "$before" != --threads ] || threads=$word; before=$word; done
{line}
{BIN} "$@" | sed "s/^time  *about [^ ]* s:/time about $time s:/"
""")
    os.chmod(program, 0o755)
    return program


def layout(result):
    found = re.search(r"^#PBS -l select=(\d+):ncpus=\d+:mpiprocs=(\d+):ompthreads=(\d+):",
                      result.stdout, re.M)
    return tuple(map(int, found.groups())) if found else result.stdout


def check_length(suite, env, obs):
    """No more ranks than a job of its length can use: nodes x ranks x threads."""
    folder = os.path.join(JOBS, "submit.sh")
    base = ["--dry-run", "--scheduler", "pbs", "--cores", "16", "--node-memory", "99999",
            "--memory", "99"]
    image = [obs, "-o", suite.path("sky"), *OPTIONS]
    for label, line, options, wanted in [
            ("a second", "time=1", [], (1, 1, 1)),
            ("100 s of one core", "time=$((100 / ranks))", [], (1, 2, 1)),
            ("10 minutes of one core", "time=$((600 / ranks))", [], (1, 8, 1)),
            ("2 hours of one core", "time=$((7200 / ranks))", [], (1, 8, 1)),
            ("8 hours of one core", "time=$((28800 / ranks))", [], (1, 16, 1)),
            ("8 hours of one core, in 8", "time=$((28800 / ranks))", ["--time", "480"],
             (1, 8, 1)),
            ("2 hours that ranks do not shorten", "time=7200", [], (1, 1, 1)),
            ("2 hours that four ranks shorten",
             "time=$((7200 / (ranks < 4 ? ranks : 4)))", [], (1, 4, 1)),
            ("4 hours that four ranks shorten",
             "time=$((14400 / (ranks < 4 ? ranks : 4)))", [], (1, 4, 1)),
            ("so many nodes as told", "time=1", ["--nodes", "2"], (2, 16, 1))]:
        program = make_planner(suite, "planner", line)
        result = bash(suite, dict(env, TESSERA=program), folder, *base, *options, *image)
        suite.equal(f"submit.sh, {label}", layout(result), wanted)
    program = make_planner(suite, "planner", "time=7200")
    for label, options, wanted in [("half more than planned", [], "03:10:00"),
                                   ("three times what is guessed", ["--niter", "99"], "06:10:00")]:
        result = bash(suite, dict(env, TESSERA=program), folder, *base,
                      *[word for word in image if word != "--no-psf"], *options)
        suite.true(f"submit.sh, {label}: {wanted}", f"walltime={wanted}\n" in result.stdout)


def check_missing(suite, env, obs):
    """All that is missing is named at once."""
    empty = suite.path("none")
    os.makedirs(empty)
    for tool in ("bash", "dirname", "readlink", "awk", "sed", "grep", "sort", "head",
                 "mktemp", "rm", "basename", "tr", "cat"):
        os.symlink(shutil.which(tool), os.path.join(empty, tool))
    alone = dict(env, PATH=empty)
    everything = ["an observation", "--size N", "--scale ANGLE", "-o NAME",
                  "--scheduler slurm|pbs", "--cores N", "--node-memory MIB"]
    node = ["--scheduler", "pbs", "--cores", "4", "--node-memory", "4096"]
    for label, words, missing in [
            ("nothing given", [], everything),
            ("an observation only", [obs], everything[1:]),
            ("all but an output and a size", [*node, obs, "--scale=1asec"],
             ["--size N", "-o NAME"]),
            ("a file of options", ["--scheduler", "pbs", "--config", "x.conf"],
             ["-o NAME", "--cores N", "--node-memory MIB"])]:
        result = bash(suite, alone, os.path.join(JOBS, "submit.sh"), *words)
        lines = result.stdout.splitlines()
        suite.equal(f"submit.sh, {label}: status", result.returncode, 2)
        suite.equal(f"submit.sh, {label}: lines {lines}", len(lines), 1)
        for word in everything:
            suite.equal(f"submit.sh, {label}: {word} is missing", word in lines[0],
                        word in missing)
    result = bash(suite, alone, os.path.join(JOBS, "submit.sh"), "--schduler", *node[1:], obs)
    suite.equal("submit.sh, a misspelt option: status", result.returncode, 2)
    suite.true(f"submit.sh, a misspelt option is named: {result.stdout}",
               "--cores of submit.sh comes behind '--schduler'" in result.stdout)


def check_threads(suite, env, obs):
    """Ranks of one thread; of more where memory is too short for as many ranks, each of
    which takes 48 MiB and little else here."""
    env = dict(env, TESSERA=make_planner(suite, "long",
                                         "time=$((4800 / (ranks * threads)))"))
    for memory, ranks in ((4096, 4), (250, 2), (130, 1)):
        result = bash(suite, env, os.path.join(JOBS, "submit.sh"), "--dry-run",
                      "--scheduler", "pbs", "--cores", "4", "--node-memory", memory,
                      "--most-nodes", "1", "--memory", "99", obs, "-o",
                      suite.path("sky"), *OPTIONS)
        wanted = f"select=1:ncpus=4:mpiprocs={ranks}:ompthreads={4 // ranks}:mem=99mb"
        if not suite.true(f"submit.sh, nodes of {memory} MiB: {wanted}",
                          f"#PBS -l {wanted}\n" in result.stdout):
            print(result.stdout)


def check_job(suite, env, obs, script):
    """PBS runs the script, with two minutes of which two are for its end, until done."""
    suite.image("whole", obs, *OPTIONS, *forced(block_planes=2), "--threads", "1")
    with open(suite.path("nodes"), "w") as f:
        f.write("node1\n")
    env = dict(env, PBS_JOBID="7.server", PBS_O_WORKDIR=suite.work, OMP_NUM_THREADS="2",
               PBS_NODEFILE=suite.path("nodes"), TESSERA_LAUNCH="none")
    states, count = [], 0
    while len(states) < 30 and (not states or states[-1] == 75):
        result = bash(suite, dict(env, TESSERA_RESTARTED=str(count)), script)
        states.append(result.returncode)
        count += 1
        if states[-1] == 75:
            suite.equal("submitted again", submitted(suite)[-1],
                        f'-v TESSERA_RESTARTED={count},TESS_FORCE="{FORCED}" {script}')
    suite.true(f"status of the runs: {states}", len(states) > 2 and states[-1] == 0)
    suite.true("says what it does", "job: 1 ranks of 2 threads" in result.stdout)
    if states[-1] != 0:
        print(result.stdout[-3000:])
        return
    wanted = read_image(suite.path("whole-dirty.fits"))[0]
    image = read_image(suite.path("sky map-dirty.fits"))[0]
    suite.true("the bytes of one uninterrupted run", image.tobytes() == wanted.tobytes())


def check_idle(suite, env):
    """A job whose turns save nothing, by a stand-in for tessera that is always stopped, is
    submitted again once; one that gets on, every time."""
    saved, program = suite.path("idle.saved"), suite.path("bin", "stopped")
    os.makedirs(saved)
    with open(program, "w") as f:
        f.write('#!/bin/sh\n[ "$1" = image ] || exit 0\n'
                'echo "generation $TURN" >"$STANDIN/idle.saved/checkpoint"; exit 75\n')
    os.chmod(program, 0o755)
    script = suite.path("idle.job")
    with open(script, "w") as f:
        f.write('. "$TESSERA_JOBS/job.sh" || exit 2\njob_image obs.uvfits -o idle\n')
    env = dict(env, TESSERA_LAUNCH="none", TESSERA=program, TESSERA_JOBS=JOBS,
               TESSERA_SCRIPT=script)
    again = []
    for turn in (1, 2, 2, 3, 3, 3, 3, 3):
        before = len(submitted(suite))
        result = bash(suite, dict(env, TURN=str(turn)), script)
        suite.equal("stopped: status", result.returncode, 75)
        again.append(len(submitted(suite)) - before)
        told = "two turns have saved nothing" in result.stdout
        suite.equal("says why it is not submitted again", told, again[-1] == 0)
    suite.equal("submitted again, turn by turn", again, [1, 1, 1, 1, 1, 0, 1, 0])


def check_shell(suite):
    if not shutil.which("shellcheck"):
        suite.skipped("shellcheck is not installed")
        return
    for name in sorted(n for n in os.listdir(JOBS) if n.endswith(".sh")):
        result = subprocess.run(["shellcheck", "-x", "-P", ROOT, name], cwd=JOBS,
                                text=True, stdout=subprocess.PIPE)
        if not suite.equal(f"shellcheck {name}", result.returncode, 0):
            print(result.stdout)


def main():
    suite = Suite("pbs_jobs")
    env = make_standins(suite)
    obs = make_observation(suite, 1000)
    check_job(suite, env, obs, check_submit(suite, env, obs))
    check_words(suite, env, obs)
    check_threads(suite, env, obs)
    check_length(suite, env, obs)
    check_missing(suite, env, obs)
    check_idle(suite, env)
    check_shell(suite)
    suite.finish()


if __name__ == "__main__":
    main()
