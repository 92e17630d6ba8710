"""A Slurm cluster of one node, this machine: controller, node daemon and munge in a temporary folder, on local ports."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo")
CONFIGURATION = """\
ClusterName=hcclsim
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why a cluster cannot be started here, or None."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"not installed: {', '.join(absent)} (Debian: slurm-wlm munge)" if absent else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class OneNode:
    """Starts on entry, stops on exit; clients need self.environment."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.folder.chmod(0o755)
        self.daemons = []
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        configuration = self.folder / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(
            host=host, folder=self.folder, processors=os.cpu_count(), controller_port=free_port(), node_port=free_port()))
        self.environment = {**os.environ, "SLURM_CONF": str(configuration)}
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        try:
            files = [f"--{what}={self.folder}/munge.{what.split('-')[0]}" for what in
                     ("socket", "pid-file", "log-file", "seed-file")]
            self.start("munged", "--foreground", "--force", f"--key-file={key}", *files)
            self.wait(lambda: (self.folder / "munge.socket").exists(), "munged makes no socket")
            self.start("slurmctld", "-D", "-c", "-f", configuration)
            self.start("slurmd", "-D", "-f", configuration)
            self.wait(lambda: "idle" in self.client("sinfo", "-h", "-o", "%T"), "the node does not become idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self, *command):
        with (self.folder / f"{command[0]}.out").open("wb") as log:
            self.daemons.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment,
                                                 start_new_session=True))

    def client(self, *command):
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment)
        return done.stdout

    def wait(self, condition, complaint, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                logs = "".join(f"--- {file.name}\n{file.read_text(errors='replace')[-1500:]}" for file in
                               sorted(self.folder.glob("*.[lo][ou][gt]")))
                raise RuntimeError(f"{complaint}\n{logs}")
            time.sleep(0.1)

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
