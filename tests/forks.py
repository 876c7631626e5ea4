"""Processes that are forked while another thread fits, each of which fits too.

A forked process has a copy of the thread that forked and of no other: whatever lock another thread
held at that moment stays locked in it. ``python tests/forks.py 1000`` forks 1,000 times.
"""

import os
import signal
import sys
import threading
import time
import traceback
import warnings

from threadpoolctl import threadpool_info

from sparsistent import GaussianGraphicalModel, GlobalGreedy, NeighborhoodGreedy

# Seconds after which a process that should take a tenth of one is considered to be deadlocked.
TIME_LIMIT = 120.0
# From Python 3.12 on, what is tested here is warned of.
FORK_WARNING = r"This process \(pid=\d+\) is multi-threaded, use of fork\(\)"

# Few variables, whose refits are dense; and so many that threads and all correlations are used.
# Samples are many for the thread, so that it is computing correlations most of the time.
CHAINS = [GaussianGraphicalModel.chain(p, 0.6) for p in (20, 450)]
TABLES = [chain.sample(300, random_state=0) for chain in CHAINS]
LONG_TABLES = [chain.sample(4_000, random_state=0) for chain in CHAINS]


def graphs(tables):
    """The edges that both estimators find in each table."""
    return [
        estimator.fit(table).edges_.tolist()
        for table in tables
        for estimator in (GlobalGreedy(), NeighborhoodGreedy())
    ]


def blas_limits():
    """The threads of each library of linear algebra."""
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def run_child(expected):
    """In the forked process: fit, compare, and leave without what the parent does at its end."""
    status = 1
    try:
        assert (blas_limits(), graphs(TABLES), blas_limits()) == expected
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def wait_for(child):
    """The exit status of a process; it is killed, and that is an error, after the time limit."""
    deadline = time.monotonic() + TIME_LIMIT
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"a forked process has not ended after {TIME_LIMIT:.0f} s")


def fork_while_fitting(count):
    """Fork so often while a thread fits; an error unless every process finds the right graphs."""
    expected = blas_limits(), graphs(TABLES), blas_limits()
    stop, fits = threading.Event(), []

    def keep_fitting():
        while not stop.is_set():
            fits.append(graphs(LONG_TABLES))

    thread = threading.Thread(target=keep_fitting)
    thread.start()
    try:
        for number in range(count):
            # At another stage of the thread's fits each time.
            time.sleep(0.001 * (7 * number % 40))
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", FORK_WARNING, DeprecationWarning)
                child = os.fork()
            if child == 0:
                run_child(expected)
            status = wait_for(child)
            if status != 0:
                raise RuntimeError(f"forked process {number + 1} has ended with status {status}")
    finally:
        stop.set()
        thread.join()
    assert all(found == fits[0] for found in fits)
    assert blas_limits() == expected[0]
    return len(fits)


if __name__ == "__main__":
    count = int(sys.argv[1])
    start = time.monotonic()
    n_fits = 4 * fork_while_fitting(count)
    sys.stdout.write(f"{count} forks, {n_fits} fits, {time.monotonic() - start:.0f} s\n")
