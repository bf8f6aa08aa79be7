"""Thousands of hostile small fits: separable, repeated, constant, badly scaled, one-sided; all methods and kernels.

    python studies/hostile.py [--count 10000] [--first 0] [--jobs 2]     run the seeds and report
    python studies/hostile.py --only SEED                                run one seed, with its traceback

Every fit must end with probabilities that are finite and sum to one, or with a ValueError or MemoryError that says in a
sentence what is wrong, and take less than 20 seconds of processor. Results are stored in studies/.hostile.jsonl as they
come, so that a stopped run can continue; those of other code are measured again.
"""

from __future__ import annotations

import re
import signal
import time
import traceback
import warnings
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import hostile_cases
import numpy as np
import runs
from threadpoolctl import threadpool_limits

from gpclass.core.registry import parts

RESULTS = runs.Results(Path(__file__).with_name(".hostile.jsonl"), ("seed",))
LONGEST, STOP = 20.0, 60.0  # processor seconds: a failure, and the end of the fit
NUMBER = re.compile(r"-?\d[\d.,]*(?:e[+-]?\d+)?|\b(?:nan|inf)\b")
HERE = ("gpclass", "sklearn")  # packages whose sentences are meant for users


class Stopped(BaseException):
    """The fit took too long. Not an Exception, so that nothing in the way catches it."""


def _stop(*_: Any) -> None:
    raise Stopped


def probe(seed: int) -> runs.Record:
    """Fit and predict one case, and return what came of it."""
    case = hostile_cases.make(seed)
    record: runs.Record = {"seed": seed, "words": case.words, "failure": None, "exception": None}
    if case.words["method"] not in parts("inference"):
        return record | {"skipped": True, "seconds": 0.0, "warnings": {}}
    signal.signal(signal.SIGPROF, _stop)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        try:
            signal.setitimer(signal.ITIMER_PROF, STOP)
            record["failure"] = _fit(case)
        except Stopped as stop:
            frames = traceback.extract_tb(stop.__traceback__)
            inside = [f"{Path(f.filename).name}:{f.name}" for f in frames if "/gpclass/" in f.filename]
            record["failure"] = f"stopped after {STOP:.0f} seconds of processor in {' > '.join(inside[-4:])}"
        except Exception as error:
            record["exception"] = f"{type(error).__name__}: {error}"
            record["failure"] = _judge(error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    record["seconds"] = round(time.process_time() - start, 3)
    if record["failure"] is None and record["seconds"] >= LONGEST:
        record["failure"] = f"{record['seconds']:.0f} seconds"
    said = Counter(f"{w.category.__name__}: {NUMBER.sub('#', str(w.message))[:160]}" for w in caught)
    return record | {"warnings": dict(said)}


def _fit(case: hostile_cases.Case) -> str | None:
    """Fit and predict; return what is wrong with the result, if anything."""
    clf = case.classifier.fit(case.X, case.y, case.weight)
    p = clf.predict_proba(case.test)
    evidence = clf.log_marginal_likelihood_value_
    if not np.isfinite(p).all():
        return "probabilities are not finite"
    if p.min() < 0.0 or p.max() > 1.0:
        return "probabilities are not between 0 and 1"
    if np.abs(p.sum(axis=1) - 1.0).max() > 1e-6:
        return f"probabilities sum to one within {np.abs(p.sum(axis=1) - 1.0).max():.1e} only"
    if evidence is not None and not np.isfinite(evidence):
        return f"the evidence is {evidence}"
    return None


def _judge(error: Exception) -> str | None:
    """Return what is wrong with an exception: its type, or that it comes from the depths of another package."""
    ours = isinstance(error, ValueError) and type(error).__module__.startswith("gpclass.")
    if type(error) not in (ValueError, MemoryError) and not ours:
        return f"raised {type(error).__name__}"
    frames = traceback.extract_tb(error.__traceback__)
    if not any(f"/{package}/" in frames[-1].filename for package in HERE):
        return f"the sentence is from {Path(frames[-1].filename).name}, not written for users"
    return None


def measure(key: runs.Key, code: runs.Record) -> runs.Record:
    return probe(key[0]) | code


def report(records: list[runs.Record]) -> None:
    """Print the sentences of exceptions, the warnings, the slowest fits and the failures."""
    run = [r for r in records if not r.get("skipped")]
    failed = [r for r in run if r["failure"]]
    refused = [r for r in run if r["exception"] and not r["failure"]]
    print(f"\n{len(run)} fits ({len(records) - len(run)} skipped: no such method), ", end="")
    print(f"{len(refused)} refused with a sentence, {len(failed)} failed.")
    print("\nExceptions, numbers replaced by #: count, sentence, a seed")
    _count(refused, lambda r: [NUMBER.sub("#", r["exception"].splitlines()[0])])
    print("\nWarnings: fits that had them, sentence, a seed")
    _count(run, lambda r: list(r["warnings"]))
    print("\nSlowest: processor seconds, seed, case")
    for r in sorted(run, key=lambda r: -r["seconds"])[:10]:
        print(f"  {r['seconds']:7.2f}  {r['seed']}  {_short(r['words'])}")
    print("\nFailures: seed, what, exception, case")
    for r in sorted(failed, key=lambda r: (str(r["failure"]), r["seed"])):
        print(f"  {r['seed']}: {r['failure']} | {(r['exception'] or '-')[:200]} | {_short(r['words'])}")


def _count(records: list[runs.Record], texts: Any) -> None:
    found: dict[str, list[int]] = defaultdict(list)
    for r in records:
        for text in texts(r):
            found[text].append(r["seed"])
    for text, seeds in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"  {len(seeds):5d}  {text}  [{seeds[0]}]")


def _short(words: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in words.items())


def main() -> None:
    parser = runs.parser(__doc__ or "")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, default=None, metavar="SEED")
    args = parser.parse_args()
    if args.only is not None:
        case = hostile_cases.make(args.only)
        print(_short(case.words))
        record = probe(args.only)
        print({k: v for k, v in record.items() if k != "words"})
        if record["exception"]:  # again, for its traceback
            case.classifier.fit(case.X, case.y, case.weight)
        return
    code = runs.code()
    keys = [(seed,) for seed in range(args.first, args.first + args.count)]
    todo = RESULTS.missing(keys, lambda r: r["tree"] == code["tree"])
    function = partial(measure, code=code)
    runs.run(todo, function, RESULTS, jobs=args.jobs, minutes=args.minutes, show=lambda r: bool(r["failure"]))
    report([r for key, r in RESULTS.read().items() if key in set(keys) and r["tree"] == code["tree"]])


if __name__ == "__main__":
    main()
