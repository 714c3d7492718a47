"""Records of runs: a JSON file each or, put together by `pack`, a line each in the .jsonl of their table.

Beside a record are, where there are any, its arrays in an .npz.

A record says which cell of which table or figure it belongs to, what was run, and what came out:

    table              "table1" to "table5", "figure-a", "figure-b" or "figure-c"
    data, method       registry names
    procedure, rate    how candidate sets were drawn; null where they come with the data
    trial, seed        fold or trial number; runs of two methods with equal ones are paired
    config             the whole configuration, as far as it has an effect; old records also hold
                       values that were never read
    schedule           "paper", or in words how the run departs from it
    versions, commit   of everything that was used
    seconds, peak_gigabytes
    accuracy           on the test part, at the last epoch
    accuracy_last_10   mean over the last ten epochs; null for methods without epochs
    selected           {rule: {epoch, score, accuracy}} of the epochs that label-free scores choose, or null
    recovered          share of training labels that the label distributions recover, or null
    convergence        mean absolute change of the label distributions at each epoch, or null
    course             test accuracy and training terms at every tenth epoch and the last ten, or null
    trust              share of the posterior in VALEN's target, or null
    sampler            "vectorized" where VALEN drew so, which it does for many classes; else missing
    clean_network      whose network drew the instance-dependent sets: "authors' form, 400 epochs",
                       "trained here, N epochs", or a file's name and checksum; null for other sets

Course, trust and clean_network are missing in old records.

The arrays: `probabilities` [test examples, classes] and `labels` [test examples]; for methods that
recover them `distributions` and `candidates` [examples, classes], `train_labels` [examples] and
`images` [examples, ...].
"""

import functools
import json
import pathlib
import re

from valen_tf import methods
from valen_tf.checks import require
from valen_tf.data import locks
from valen_tf.data.files import broken, read_arrays, write
from valen_tf.data.sets.registry import AUTHORS_NETWORK, TRAINED_NETWORK
from valen_tf.papers.valen2021 import paper
from valen_tf.runs.config import config_from, effective

PAPER_SCHEDULE = "paper"
# How the epoch that counts is chosen -> in words. Only the first is the paper's.
RULES = {
    "last": "at the last epoch",
    "last_10": "as the mean of the last ten epochs",
    "covering_rate": "at the epoch of the best covering rate",
    "approximated_accuracy": "at the epoch of the best approximated accuracy",
}
KEYS = (
    "table",
    "data",
    "procedure",
    "rate",
    "method",
    "trial",
    "seed",
    "config",
    "schedule",
    "versions",
    "commit",
    "seconds",
    "peak_gigabytes",
    "accuracy",
    "accuracy_last_10",
    "selected",
    "recovered",
    "convergence",
)


def check(record):
    """Refuses a record that the tables could not use, in words that name the key.

    Args:
        record: A dict.

    Returns:
        The record.

    Example:
        >>> check({"table": "table9"})
        Traceback (most recent call last):
        ...
        ValueError: A record must have the key 'data'. Received: table
    """
    for key in KEYS:
        require(key in record, f"A record must have the key {key!r}", ", ".join(record))
    tables = (*paper.TABLES, *paper.FIGURES)
    require(record["table"] in tables, f"`table` must be one of {', '.join(tables)}", _say(record))
    if record["table"] in paper.TABLES:
        table = paper.TABLES[record["table"]]
        known = f"`data` of {record['table']} must be one of {', '.join(table.data)}"
        require(record["data"] in table.data, known, _say(record, "data"))
        wanted = f"`procedure` of {record['table']} must be {table.procedure!r}"
        require(record["procedure"] == table.procedure, wanted, _say(record, "procedure"))
    for key in ("data", "method"):  # which become names of files
        plain = re.fullmatch(r"\w[\w.+-]*", str(record[key]))
        require(plain, f"`{key}` must be a plain name", _say(record, key))
    # `superseded` says by what a run of another code differs from what the same config gives now.
    for key in ("schedule", "commit", "clean_network", "superseded"):  # which become text of pages
        harmful = re.search(r"[<>\x00-\x1f\x7f]", str(record.get(key)))
        require(not harmful, f"`{key}` must be plain text", _say(record, key))
    for key in ("trial", "seed"):
        whole = isinstance(record[key], int) and record[key] >= 0
        require(whole, f"`{key}` must be a whole number from 0", _say(record, key))
    for key in ("accuracy", "accuracy_last_10", "recovered"):
        empty = record[key] is None and key != "accuracy"
        require(empty or _is_share(record[key]), f"`{key}` must be in [0, 1]", _say(record, key))
    for rule, choice in (record["selected"] or {}).items():
        require(rule in RULES, f"A rule of `selected` must be one of {', '.join(RULES)}", rule)
        require(_is_share(choice["accuracy"]), f"`accuracy` of {rule} must be in [0, 1]", choice)
    return record


def read(folder):
    """Reads and checks every record in a folder and the folders in it.

    Args:
        folder: The folder; every `.json` file in it, and every line of a `.jsonl` file, must be a record.

    Returns:
        A list of dicts in the order of the paper, each with `"file"`, the path of its own file; those of
        `one_per_run`.
    """
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder of records {folder}.")
    found, seen = [], {}
    for path, text in _texts(folder):
        try:
            record = check(dict(json.loads(text)))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is not a record of a run: {error}") from error
        run = _run(record)
        if path.suffix == ".jsonl" and seen.get(run, path).suffix == ".json":
            continue  # a file of its own takes the place of the line
        require(run not in seen, "A run must have one record", f"{seen.get(run)} and {path}")
        seen[run] = path
        own = path if path.suffix == ".json" else folder / f"{name_of(record)}.json"
        found.append({**record, "file": own})
    return sorted(one_per_run(found), key=_place)


def _texts(folder):
    for path in _own_files(folder):
        yield path, path.read_text()
    for path in sorted(folder.glob("*.jsonl")):
        yield from ((path, line) for line in path.read_text().splitlines())


def _own_files(folder):
    # A process that was killed while it wrote may have left a part of a file.
    return sorted(path for path in folder.rglob("*.json") if ".partial" not in path.name)


def name_of(record):
    """Path of a record's own file below the folder of records, without an ending.

    Example:
        >>> name_of({"table": "table5", "data": "lost", "method": "valen", "rate": None, "trial": 2})
        'table5/lost/valen-2'
    """
    rate = "" if record["rate"] is None else f"-{record['rate']:g}"
    return f"{record['table']}/{record['data']}/{record['method']}{rate}-{record['trial']}"


def packed(path):
    """The records in the `.jsonl` file of a table: name -> record; none where there is no file."""
    return _lines(path, path.stat().st_mtime_ns) if path.exists() else {}


@functools.lru_cache(maxsize=16)
def _lines(path, modified):
    """As `packed`; a grid asks for the same file for every run."""
    try:
        found = list(map(json.loads, path.read_text().splitlines()))
        return {name_of(record): record for record in found}
    except (ValueError, TypeError, KeyError) as error:
        advice = "bring it back from a copy, or delete it to run its table again."
        raise broken(path, advice, error) from error


def pack(folder):
    """Puts the records of a folder together, a line each in the `.jsonl` of their table.

    A record in a file of its own takes the place of its line; the file is deleted when the line is written.

    Args:
        folder: Folder of records.

    Returns:
        The number of records.
    """
    folder = pathlib.Path(folder)
    with locks.claimed(folder, "packing records"):
        return _pack(folder)


def _pack(folder):
    found = {}
    for path in folder.glob("*.jsonl"):
        found |= {name: check(record) for name, record in packed(path).items()}
    own = {path: check(json.loads(path.read_text())) for path in _own_files(folder)}
    found |= {name_of(record): record for record in own.values()}
    found = {name: _with_effective_config(record) for name, record in found.items()}
    for table in sorted({record["table"] for record in found.values()}):
        lines = [json.dumps(found[name]) for name in sorted(found) if found[name]["table"] == table]
        text = "\n".join(lines) + "\n"
        write(folder / f"{table}.jsonl", lambda path, text=text: path.write_text(text))
    for path in own:
        path.unlink()
    return len(found)


def _with_effective_config(record):
    """The record without the values of its config that were stored and never read."""
    stored = record["config"]
    if not stored:
        return record
    read = effective(config_from(stored, name_of(record))).to_dict()

    def kept(old, new):  # keys that came later are not put into a run that had none of them
        both = {key: new[key] for key in old if key in new}
        return {
            key: kept(old[key], value) if isinstance(value, dict) and key != "settings" else value
            for key, value in both.items()
        }

    return {**record, "config": kept(stored, read)}


def one_per_run(found):
    """Records under their methods' own names, one of each run.

    A record under another name of its method stands for the method's own where that is missing.

    Args:
        found: Records.

    Returns:
        A list of records; those that were renamed are copies.
    """
    renamed = [{**record, "method": methods.own_name(record["method"])} for record in found]
    alias = [old["method"] != new["method"] for old, new in zip(found, renamed, strict=True)]
    own = {_run(record) for record, other in zip(renamed, alias, strict=True) if not other}
    return [
        record
        for record, other in zip(renamed, alias, strict=True)
        if not other or _run(record) not in own
    ]


def arrays(record):
    """The arrays beside a record, a dict; empty where there are none."""
    path = record["file"].with_suffix(".npz")
    if not path.exists():
        return {}
    return read_arrays(path, f"delete {path} and the record beside it, and run it again.")


def accuracy(record, rule="last"):
    """The accuracy of a run under a rule.

    Args:
        record: A record.
        rule: A key of `RULES`.

    Returns:
        A float in [0, 1], or `None` where the rule's epoch was not recorded. A method without epochs
        has the same accuracy under every rule.

    Example:
        >>> chosen = {"covering_rate": {"epoch": 3, "score": 0.9, "accuracy": 0.75}}
        >>> record = {"accuracy": 0.5, "accuracy_last_10": 0.625, "selected": chosen}
        >>> [accuracy(record, rule) for rule in RULES]
        [0.5, 0.625, 0.75, None]
    """
    require(rule in RULES, f"`rule` must be one of {', '.join(RULES)}", f"rule={rule!r}")
    without_epochs = record["accuracy_last_10"] is None and record["selected"] is None
    if rule == "last" or without_epochs:
        return record["accuracy"]
    if rule == "last_10":
        return record["accuracy_last_10"]
    return (record["selected"] or {}).get(rule, {}).get("accuracy")


def at_least_one_wrong(record):
    """Whether the uniform candidate sets of a run were drawn by the rule of the authors' code.

    Example:
        >>> at_least_one_wrong({"config": {"data": {"at_least_one_wrong": True}}})
        True
        >>> at_least_one_wrong({"config": {}})  # older than the choice
        False
    """
    return record["config"].get("data", {}).get("at_least_one_wrong", False)


def clean_network(record):
    """Whose network drew the instance-dependent candidate sets of a run, in words.

    Older records lack the key, and their configs tell: the only files of networks at that time were of the
    authors' architectures.

    Returns:
        A string; `None` where no network was asked, or where nothing is known.

    Example:
        >>> clean_network({"clean_network": "trained here, 400 epochs"})
        'trained here, 400 epochs'
        >>> old = {"procedure": "instance_dependent", "config": {"data": {"clean_network": None}}}
        >>> clean_network(old)
        'trained here, 20 epochs'
    """
    if "clean_network" in record:
        return record["clean_network"]
    data = record["config"].get("data", {})
    if record["procedure"] != "instance_dependent" or "clean_network" not in data:
        return None
    return TRAINED_NETWORK if data["clean_network"] is None else AUTHORS_NETWORK


def method_place(method):
    """Sorts methods by the order on their cards."""
    return methods.place(method)


def _run(record):
    keys = ("table", "data", "procedure", "rate", "method", "seed", "trial")
    return tuple(record[key] for key in keys)


def _place(record):
    """The paper's order: `None` before numbers, methods by `method_place`."""
    table, data, procedure, rate, method, seed, trial = _run(record)
    columns = paper.TABLES[table].data if table in paper.TABLES else ()
    column = columns.index(data) if data in columns else len(columns)
    rate = (rate is not None, rate or 0.0)
    place = (table in paper.FIGURES, table, column, data, procedure or "", rate)
    return *place, method_place(method), seed, trial


def _is_share(value):
    return isinstance(value, (int, float)) and 0 <= value <= 1


def _say(record, key="table"):
    return f"{key}={record.get(key)!r}"
