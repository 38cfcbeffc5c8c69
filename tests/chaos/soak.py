"""Many real runs, each with one process killed at one moment: `python -m tests.chaos.soak --runs 100`."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.kills import Ending, kill_at
from tests.chaos.moments import MOMENTS, Moment


def plan(runs: int, seed: int) -> list[tuple[int, Moment]]:
    """Return a seed and a moment for each run; every moment comes equally often, give or take one."""
    chance = random.Random(seed)  # noqa: S311 - a seed is the point
    moments = [moment for _ in range(runs // len(MOMENTS) + 1) for moment in chance.sample(MOMENTS, len(MOMENTS))]
    return [(seed * 1000 + number, moment) for number, moment in enumerate(moments[:runs])]


def table(endings: Iterable[Ending]) -> list[str]:
    """Return one line per moment: runs, hits, how they ended, and how many broke a rule."""
    by_moment: dict[str, list[Ending]] = defaultdict(list)
    for one in endings:
        by_moment[one.moment].append(one)
    lines = [f"{'moment':<58} runs hits SUCCEEDED FAILED wrong  slowest"]
    for name in (moment.name for moment in MOMENTS if moment.name in by_moment):
        found = by_moment[name]
        ends, slowest = Counter(one.status for one in found), max(one.seconds for one in found)
        hits, wrong = sum(one.was_hit for one in found), sum(bool(one.wrong) for one in found)
        counts = f"{len(found):>4} {hits:>4} {ends['SUCCEEDED']:>9} {ends['FAILED']:>6} {wrong:>5}"
        lines.append(f"{name:<58} {counts} {slowest:>6.1f} s")
    return lines


def say(text: str) -> None:
    """Print a line at once: a soak is watched."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the soak and return 1 when any run broke a rule; the folders of those runs are kept."""
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--runs", type=int, default=len(MOMENTS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--at-once", type=int, default=2)
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="headrace-chaos-"))
    say(f"seed {given.seed}, {given.runs} runs below {root}")

    def strike(one: tuple[int, Moment]) -> Ending:
        seed, moment = one
        folder = root / str(seed)
        ending = kill_at(moment, folder, seed, is_delayed=True)
        if not ending.wrong:
            shutil.rmtree(folder)
        say(f"{seed} {moment.name}: {_in_words(ending)}")
        return ending

    with ThreadPoolExecutor(given.at_once) as pool:
        endings = list(pool.map(strike, plan(given.runs, given.seed)))
    say("\n".join(table(endings)))
    wrong, hits = sum(bool(one.wrong) for one in endings), sum(one.was_hit for one in endings)
    say(f"{len(endings)} runs, {hits} kills, {wrong} runs broke a rule (seed {given.seed})")
    return 1 if wrong else 0


def _in_words(ending: Ending) -> str:
    hit = "killed" if ending.was_hit else "missed"
    wrong = f" WRONG: {'; '.join(ending.wrong)}" if ending.wrong else ""
    return f"{hit}, {ending.status} after {ending.seconds:.1f} s ({ending.reason}){wrong}"


if __name__ == "__main__":
    sys.exit(main())
