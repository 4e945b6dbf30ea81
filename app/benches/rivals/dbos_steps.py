"""Durable steps by DBOS: `dbos_steps.py DATABASE STEPS ROUNDS CLIENTS`. DATABASE is the URL of an empty PostgreSQL database.
Prints the median of a step's cost in µs with one workflow, and the steps per second of CLIENTS workflows at once."""

import sys
import time
from statistics import median

from dbos import DBOS

database = sys.argv[1]
steps, rounds, clients = map(int, sys.argv[2:])

DBOS(
    config={
        "name": "rival",
        "system_database_url": database,
        # A connection and a thread for each workflow, and some for its own errands.
        "sys_db_pool_size": clients + 8,
        "max_executor_threads": clients + 8,
        "log_level": "ERROR",
    }
)


@DBOS.step()
def step(number: int) -> int:
    return number


@DBOS.workflow()
def work(count: int) -> list[float]:
    costs = []
    for number in range(count):
        start = time.perf_counter()
        step(number)
        costs.append(time.perf_counter() - start)
    return costs


DBOS.launch()
work(steps)
costs = [cost for _ in range(rounds) for cost in work(steps)]
start = time.perf_counter()
for _ in range(rounds):
    for handle in [DBOS.start_workflow(work, steps) for _ in range(clients)]:
        handle.get_result()
rate = clients * rounds * steps / (time.perf_counter() - start)
DBOS.destroy()
print(median(costs) * 1e6, rate)
