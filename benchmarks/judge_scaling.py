"""How many tests a second a judge keeps up with: `python benchmarks/judge_scaling.py [--workers 1 4 16 32 64]`.

The sandboxes are replaced by a small C program that answers each test after `--sleep-us` microseconds with the right
output and runs nothing, so two cores show what the judge itself costs, and where many workers get into each other's
way. Tests have a process each (`batch_tests=False`). One JSON object a line; CPU is that of the judge and its
processes, in milliseconds a test. Needs `cc`; the echo is put in place by a `sitecustomize` that judge processes
inherit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ECHO = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
struct __attribute__((packed)) result { char kind; int32_t code, signal; uint64_t cpu_us, wall_us, memory_kib;
                                        uint8_t expired; };
int main(int count, char **arguments) {
    int control = atoi(arguments[1]);
    long us = atol(arguments[2]);
    static char message[65536], rights[CMSG_SPACE(256)];
    struct result result = {'R', 0, 0, 1500, 2000, 500, 0};
    for (;;) {
        struct iovec part = {message, sizeof message};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = rights,
                                .msg_controllen = sizeof rights};
        if (recvmsg(control, &header, 0) <= 0) return 0;
        if (message[0] == 'C') {
            const char *ready = "Y{\"missing\": {}, \"call_stack\": \"\"}";
            if (send(control, ready, strlen(ready), 0) < 0) return 1;
            continue;
        }
        int files[64], number = 0;
        struct cmsghdr *sent = CMSG_FIRSTHDR(&header);
        if (sent) {
            number = (sent->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(files, CMSG_DATA(sent), number * sizeof(int));
        }
        struct timespec pause = {0, us * 1000};
        if (us) nanosleep(&pause, 0);
        if (number > 3 && write(files[3], "3\n", 2) < 0) return 1;
        for (int each = 0; each < number; each++) close(files[each]);
        if (send(control, &result, sizeof result, 0) < 0) return 1;
    }
}
"""
SITE = """
import subprocess
class Popen(subprocess.Popen):
    def __init__(self, command, **options):
        if any(str(part).endswith("zygote.py") for part in command):
            command = [{echo!r}, command[-1], {sleep_us!r}]
        super().__init__(command, **options)
subprocess.Popen = Popen
"""
TESTS = 10


def measure(workers: int, processes: int | None, seconds: float) -> dict[str, object]:
    """Judge for about so many seconds, after a start that does not count."""
    from microcoder.judge import Judge
    from microcoder.judge.core.types import Problem, Program, TestCase

    tests = tuple(TestCase(input=f"{number} 3\n", output="3\n") for number in range(TESTS))
    problem = Problem(id="echo", tests=tests, time_limit_seconds=6)
    options = {"batch_tests": False, "cache_size": 0, "time_scale": 1.0}
    with Judge(workers=workers, processes=processes, **options) as judging:
        pids = [os.getpid()]
        rate, num_programs, start = 0.0, 8 * workers, time.perf_counter()
        for is_measured in (False, False, True):
            if is_measured:
                num_programs = max(8 * workers, int(rate * seconds / TESTS))
                members = getattr(judging._pool, "members", ())
                pids += [member.process.pid for member in members if member.process is not None]
            programs = [Program(f"print(3)  # {number} {is_measured}") for number in range(num_programs)]
            start, cpu_seconds = time.perf_counter(), sum(map(read_cpu_seconds, pids))
            verdicts = judging.judge(programs, [problem] * num_programs)
            wall_seconds = time.perf_counter() - start
            rate = num_programs * TESTS / wall_seconds
        cpu_seconds = sum(map(read_cpu_seconds, pids)) - cpu_seconds
        return {
            "workers": workers,
            "processes": judging.processes,
            "tests": num_programs * TESTS,
            "accepted": sum(verdict.is_accepted for verdict in verdicts),
            "wall_s": round(wall_seconds, 2),
            "tests_per_s": round(rate),
            "judge_cpu_ms_per_test": round(1e3 * cpu_seconds / (num_programs * TESTS), 3),
        }


def read_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure each number of workers in a fresh process that has the echo in place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 8, 16, 32, 64])
    parser.add_argument("--processes", type=int, default=None, help="judge processes; chosen by the judge by default")
    parser.add_argument("--sleep-us", type=int, default=2500, help="how long a sandbox takes for a test")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure(options.workers[0], options.processes, options.seconds)), flush=True)
        return
    compiler = shutil.which("cc")
    if compiler is None:
        sys.exit("there is no C compiler for the echo; install one, such as `apt install gcc`")
    with tempfile.TemporaryDirectory() as folder:
        source, echo = Path(folder, "echo.c"), Path(folder, "echo")
        source.write_text(ECHO, encoding="utf-8")
        subprocess.run([compiler, "-O2", "-o", echo, source], check=True)
        site = SITE.format(echo=str(echo), sleep_us=str(options.sleep_us))
        Path(folder, "sitecustomize.py").write_text(site, encoding="utf-8")
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        for workers in options.workers:
            command = [sys.executable, __file__, "--here", "--workers", str(workers)]
            command += ["--seconds", str(options.seconds)]
            command += [] if options.processes is None else ["--processes", str(min(options.processes, workers))]
            subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True)


if __name__ == "__main__":
    main()
