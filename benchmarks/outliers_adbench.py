"""Detectors on public sets with real outliers, and on the same rows trained on clean rows only.

    python -m venv PYOD && PYOD/bin/pip install -r benchmarks/outliers-adbench-requirements.txt
    OMP_NUM_THREADS=1 python benchmarks/outliers_adbench.py --data FOLDER --peers PYOD/bin/python

FOLDER holds npz files with rows `X` and labels `y`, 1 for outliers. 70 % of the rows of each, drawn
by seed and in the shares of `y`, are for fitting (with their outliers, or without them in the
second pair of tables), the others for testing. All detectors have default settings, and see
standardised columns but for Roundtrip, which has units of its own. PyOD's detectors run in their
own environment, one process for each set and seed. Results go to results/outliers-adbench; an
interrupted run resumes.
"""

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

PEERS = (
    *("IForest", "ECOD", "COPOD", "KNN", "LOF", "OCSVM", "PCA", "HBOS", "GMM", "MCD", "CBLOF"),
    *("INNE", "DTE-nonparametric"),
)
OURS = "Roundtrip"
TITLES = {"auroc": "Area under the ROC curve", "average_precision": "Average precision"}
TEST_SHARE, NEIGHBOURS = 0.3, 5
MODULES = {name: name.lower() for name in PEERS}


def parts(path, seed, clean):
    """Training rows, test rows and labels of these."""
    from sklearn.model_selection import train_test_split

    with np.load(path) as data:
        X, y = data["X"].astype(float), data["y"].astype(int)
    train, test, known, labels = train_test_split(
        X, y, test_size=TEST_SHARE, random_state=seed, stratify=y
    )
    return train[known == 0] if clean else train, test, labels


def peer_scores(name, train, test, seed):
    """Scores of the test rows by one of PyOD's detectors; high for outliers."""
    from importlib import import_module
    from inspect import signature

    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    if name == "DTE-nonparametric":
        distances, _ = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(train).kneighbors(test)
        return distances.mean(axis=1)
    kind = getattr(import_module(f"pyod.models.{MODULES[name]}"), name)
    seeded = {"random_state": seed} if "random_state" in signature(kind).parameters else {}
    return kind(**seeded).fit(train).decision_function(test)


def our_scores(name, train, test, seed, clean):
    """Scores of the test rows by Roundtrip."""
    from roundtrip import RoundtripDetector

    return -RoundtripDetector(clean=clean, random_state=seed).fit(train).score_samples(test)


def measured(path, methods, seed, clean):
    """Area under the ROC curve, average precision and seconds of several methods on one split."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    train, test, labels = parts(path, seed, clean)
    found = {}
    for name in methods:
        start = time.perf_counter()
        try:
            if name == OURS:
                scores = our_scores(name, train, test, seed, clean)
            else:
                scores = peer_scores(name, train, test, seed)
        except (ValueError, np.linalg.LinAlgError) as error:
            found[name] = {"error": str(error)}  # some peers refuse some sets
            continue
        seconds = time.perf_counter() - start
        scores = np.nan_to_num(np.asarray(scores, float), nan=0.0, posinf=1e300, neginf=-1e300)
        found[name] = {
            "auroc": float(roc_auc_score(labels, scores)),
            "average_precision": float(average_precision_score(labels, scores)),
            "seconds": seconds,
        }
    return found


def of_peers(python, path, seed, clean):
    """Measure the peers in their own environment."""
    command = [python, __file__, "--measure", str(path), "--seed", str(seed)]
    done = subprocess.run(
        command + ["--clean"] * clean, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return summed(json.loads(done.stdout.splitlines()[-1]))


def summed(methods):
    """The record of one run."""
    found = [each["auroc"] for each in methods.values() if "auroc" in each]
    return {"methods": methods, "mean_auroc": float(np.mean(found))}


def tables(records, sets):
    """Tables of area under the ROC curve and average precision, by set and method."""
    from roundtrip.reproduce.request import markdown_table

    text = []
    for clean in (False, True):
        chosen = [record for record in records if record["clean"] == clean]
        for entry, title in (
            ("auroc", "Area under the ROC curve"),
            ("average_precision", "Average precision"),
        ):
            values = {}
            for record in chosen:
                for method, found in record["methods"].items():
                    if entry in found:
                        values.setdefault((record["set"], method), []).append(found[entry])
            methods = [name for name in (OURS, *PEERS) if any(key[1] == name for key in values)]
            rows = []
            for name in sets:
                cells = [values.get((name, method)) for method in methods]
                if any(cells):
                    rows.append([name, *(f"{np.mean(c):.3f}" if c else "" for c in cells)])
            if not rows:
                continue
            rows.append(["mean"])
            for method in methods:
                known = [values[name, method] for name in sets if (name, method) in values]
                whole = len(known) == len(sets)  # means over other sets would mislead
                rows[-1].append(f"{np.mean([np.mean(c) for c in known]):.3f}" if whole else "")
            kind = "trained on clean rows only" if clean else "outliers in the training rows"
            text.append(f"## {title}, {kind}\n\n{markdown_table(['set', *methods], rows)}")
    return "\n\n".join(text)


def main():
    from roundtrip.reproduce.fits import machine
    from roundtrip.reproduce.request import Request
    from roundtrip.reproduce.runs import Log, Runs

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with npz files")
    parser.add_argument("--peers", help="Python of an environment with PyOD")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--again", action="store_true", help="compute ours anew")
    arguments = parser.parse_args()
    files = sorted(arguments.data.glob("*.npz"))
    if not files:
        raise SystemExit(f"no npz files in {arguments.data}")
    request = Request("outliers-adbench", data_home=arguments.data)
    runs = request.runs()
    cases = [
        {"set": path.stem, "seed": seed, "clean": clean, "of": of}
        for clean in (False, True)
        for seed in range(arguments.seeds)
        for path in files
        for of in (("ours", "peers") if arguments.peers else ("ours",))
    ]
    log = Log(len(cases))
    for case in cases:
        path = arguments.data / f"{case['set']}.npz"
        if case["of"] == "peers":
            compute = partial(of_peers, arguments.peers, path, case["seed"], case["clean"])
        else:
            if arguments.again:
                runs.forget(case)
            compute = partial(ours, path, case["seed"], case["clean"])
        log.run(runs, case, compute, "mean_auroc")
    records = Runs(runs.path).records
    head = f"# Public sets with real outliers\n\n{arguments.seeds} seeds. {machine(records)}."
    text = f"{head}\n\n{tables(records, [path.stem for path in files])}\n"
    request.write_text("outliers-adbench.md", text)
    print(text)


def ours(path, seed, clean):
    """Measure Roundtrip here."""
    return summed(measured(path, [OURS], seed, clean))


if __name__ == "__main__":
    if "--measure" in sys.argv:  # in the environment of the peers, which has no Roundtrip
        parser = argparse.ArgumentParser()
        parser.add_argument("--measure", type=Path)
        parser.add_argument("--seed", type=int)
        parser.add_argument("--clean", action="store_true")
        wanted = parser.parse_args()
        print(json.dumps(measured(wanted.measure, PEERS, wanted.seed, wanted.clean)))
    else:
        main()
