"""The exports of annotation tools as one long table of answers: item, annotator, label, excludes.

Each function reads the files of one tool and gives a pandas frame with a row for every answer, in which
`label` and `excludes` hold lists of names, and the columns of the task itself (its text, the name of its
picture) begin with `data.`. `PartialLabelDataset.from_answers` takes the frame as it is. Drafts, cancelled
and ignored answers are left out; an answer that rejects a label excludes it.
"""

from __future__ import annotations

import io
import json
import pathlib
import re
import zipfile
from typing import TYPE_CHECKING

from valen_tf.checks import check_file, is_inside, reading, require, shortened
from valen_tf.data.columns import fields

if TYPE_CHECKING:
    import pandas

MOST_BYTES = 2**30  # of what is in a zip: a few bytes can stand for more than the machine has
_HALF = re.compile("[\ud800-\udfff]")
_EXPORT = "an export in the tool's form, whole and in UTF-8"
COLUMNS = {"item": "item", "annotator": "annotator", "label": "label", "excludes": "excludes"}


def read(path: pathlib.Path | str) -> pandas.DataFrame:
    """Answers in an export of any of these tools, which what is in the file tells apart.

    Args:
        path: The file; of Doccano also the folder that was in it.

    Returns:
        A pandas frame.
    """
    tool = _tool(path)
    rule = f"{path} must be an export of Label Studio, Argilla, Doccano or Prodigy"
    require(tool is not None, rule, "a file in another form")
    return tool(path)


def is_export(path: pathlib.Path | str) -> bool:
    """Whether a file is an export of one of these tools, and no plain table of answers.

    Args:
        path: The file; of Doccano also a folder or a zip.
    """
    path = pathlib.Path(path)
    return path.is_dir() or path.suffix in (".zip", ".json", ".jsonl") or _tool(path) is not None


def _tool(path):
    """The function that reads a file, by what its first record holds; `None` for other files."""
    path = pathlib.Path(path)
    if path.is_dir():
        return doccano
    check_file("answers", path)
    if zipfile.is_zipfile(path):
        return doccano
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        start = file.read(1).strip() or file.readline().strip()[:1]
    if start not in ("[", "{"):
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            header = file.readline()
        columns = {name.strip().strip('"') for name in header.split(",")}
        return label_studio if {"id", "annotator", "annotation_id"} <= columns else None
    with reading(path, _EXPORT):
        records = _records(_text(path))
    record = records[0] if isinstance(records, list) and records else records
    keys = set(record) if isinstance(record, dict) else set()
    if keys & {"annotations", "completions", "annotation_id"}:
        return label_studio
    if keys & {"_input_hash", "_annotator_id", "_task_hash"}:
        return prodigy
    if "responses" in keys or any(key.endswith(".responses") for key in keys):
        return argilla
    return doccano if {"id", "label"} <= keys else None


def label_studio(path: pathlib.Path | str, *, name: str | None = None) -> pandas.DataFrame:
    """Answers in an export of Label Studio: JSON, JSON_MIN or CSV.

    Args:
        path: The file.
        name: Name of the control tag, `from_name`, whose choices are meant; needed where there are several.

    Returns:
        A pandas frame.
    """
    return _frame(_label_studio, path, name)


def _label_studio(path, name):
    text = _text(path)
    tasks = _records(text) if text.lstrip()[:1] in ("[", "{") else _rows(text, path)
    nested = any("annotations" in task or "completions" in task for task in tasks)
    return (_label_studio_tasks if nested else _label_studio_flat)(tasks, name)


def _label_studio_tasks(tasks, name):
    for task in tasks:
        for annotation in task.get("annotations", task.get("completions", ())):
            if annotation.get("was_cancelled") or annotation.get("skipped"):
                continue
            results = [
                result
                for result in annotation.get("result", ())
                if result.get("type") == "choices" and name in (None, result.get("from_name"))
            ]
            _require_one({result.get("from_name") for result in results}, "name")
            who = annotation.get("completed_by")
            who = who.get("email", who.get("id")) if isinstance(who, dict) else who
            labels = [label for result in results for label in _list(result["value"]["choices"])]
            yield task["id"], who, labels, [], task.get("data", {})


def _label_studio_flat(records, name):
    """One record for each annotation, in which the control tag is a key."""
    known = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time"}
    for record in records:
        tag = name
        if tag is None:
            choices = [key for key, value in record.items() if _is_choices(value)]
            # A single choice is a plain text: the tag is then the last key that the tool did not add.
            choices = choices or [key for key in record if key not in known][-1:]
            _require_one(set(choices), "name")
            (tag,) = choices
        data = {key: value for key, value in record.items() if key not in known | {tag}}
        yield record["id"], record.get("annotator"), _choices(record.get(tag)), [], data


def _is_choices(value):
    return isinstance(value, dict) or (isinstance(value, str) and value.startswith('{"choices"'))


def _choices(value):
    if isinstance(value, str) and value.startswith("{"):
        value = json.loads(value)
    value = value["choices"] if isinstance(value, dict) else value
    return list(value) if isinstance(value, list) else [value] if value else []


def argilla(path: pathlib.Path | str, *, question: str | None = None) -> pandas.DataFrame:
    """Answers in an export of Argilla 2: the records as JSON, or flattened as from `to_list`.

    Args:
        path: The file, JSON or JSON lines.
        question: Name of the question that is meant; needed where there are several.

    Returns:
        A pandas frame.
    """
    return _frame(_argilla, path, question)


def _argilla(path, question):
    for record in _records(_text(path)):
        if "responses" in record:  # nested: drafts cannot be told from answers
            questions, data = record["responses"] or {}, record.get("fields", {})
            wanted = question or _require_one(set(questions), "question")
            for response in questions.get(wanted, ()):
                if response.get("status", "submitted") == "submitted":
                    yield record["id"], response["user_id"], _list(response["value"]), [], data
            continue
        ends = ".responses"
        found = {key.removesuffix(ends) for key in record if key.endswith(ends)}
        wanted = question or _require_one(found, "question")
        values = record.get(f"{wanted}{ends}") or []
        users = record.get(f"{wanted}{ends}.users") or [None] * len(values)
        states = record.get(f"{wanted}{ends}.status") or ["submitted"] * len(values)
        data = {key: value for key, value in record.items() if "." not in key and key != "id"}
        as_many = len(values) == len(users) == len(states)
        require(as_many, f"{path} must have a user and a status for each response", record["id"])
        for value, user, status in zip(values, users, states, strict=True):
            if status == "submitted":
                yield record["id"], user, _list(value), [], data


def doccano(path: pathlib.Path | str) -> pandas.DataFrame:
    """Answers in an export of Doccano: a zip with a file for each member of the project.

    Args:
        path: The zip, or what was in it: `<member>.jsonl` or `<member>.csv`, or a folder of these.

    Returns:
        A pandas frame.
    """
    return _frame(_doccano, path)


def _doccano(path):
    for name, text in _members(pathlib.Path(path)):
        for record in _rows(text, path) if name.suffix == ".csv" else _lines(text):
            labels = record.get("label") or []
            labels = labels.split("#") if isinstance(labels, str) else labels
            data = {key: value for key, value in record.items() if key not in ("id", "label")}
            yield record["id"], name.stem, labels, [], data


def _members(path):
    """Name and text of the file of each member of a project."""
    if path.is_dir():
        for file in filter(_is_member, sorted(path.iterdir())):
            rule = f"{path} must hold its files itself"
            require(
                is_inside(path.resolve(), file), rule, f"{file.name}, which is elsewhere or none"
            )
            yield file, _text(file)
    elif zipfile.is_zipfile(path):
        # Read in memory: no name in an archive becomes a file.
        with zipfile.ZipFile(path) as archive:
            members = [part for part in archive.infolist() if _is_member(part.filename)]
            size = sum(part.file_size for part in members)
            rule = f"{path} must hold at most {MOST_BYTES} bytes, or be unpacked into a folder"
            require(size <= MOST_BYTES, rule, f"{size} bytes")
            for part in members:
                yield pathlib.PurePosixPath(part.filename), archive.read(part).decode("utf-8-sig")
    else:
        yield path, _text(path)


def _is_member(name):
    """Whether a file is a member's, and not one that the system put beside it."""
    name = pathlib.PurePosixPath(name)
    return name.suffix in (".csv", ".jsonl") and not name.name.startswith(".")


def prodigy(path: pathlib.Path | str) -> pandas.DataFrame:
    """Answers in an export of Prodigy, the JSON lines of `db-out`.

    Of a task with options the accepted ones are the labels. Of a binary task, which asks for one label,
    `accept` gives the label and `reject` excludes it.

    Args:
        path: The file.

    Returns:
        A pandas frame.
    """
    return _frame(_prodigy, path)


def _prodigy(path):
    for record in _records(_text(path)):
        labels, excludes, answer = [], [], record.get("answer")
        if answer == "accept":
            labels = record["accept"] if "accept" in record else _list(record.get("label"))
        elif answer == "reject" and "accept" not in record:
            excludes = _list(record.get("label"))
        data = {
            key: value
            for key, value in record.items()
            if not key.startswith("_") and key not in ("options", "accept", "answer", "label")
        }
        yield record["_input_hash"], record.get("_annotator_id"), labels, excludes, data


def _frame(answers, path, *options):
    """The long table of the `(item, annotator, labels, excluded labels, data)` that a function finds."""
    import pandas as pd

    with reading(path, _EXPORT):
        rows = [
            {
                "item": _named(item, "an item"),
                "annotator": "unknown" if annotator is None else str(_named(annotator, "a name")),
                "label": _names(labels),
                "excludes": _names(excludes),
                **{f"data.{key}": value for key, value in data.items()},
            }
            for item, annotator, labels, excludes, data in answers(path, *options)
            if labels or excludes
        ]
        frame = pd.DataFrame(rows)
    require(len(rows) > 0, f"{path} must hold an answer", "none that was given and submitted")
    return frame


def _names(labels):
    """Labels as texts: ratings and rankings, in lists or dicts of their own, are none."""
    if not isinstance(labels, list):
        raise ValueError(f"labels that are no list of names, {shortened(labels, 60)}")
    return [str(_named(label, "a label")) for label in labels]


def _named(value, what):
    """What names something: a text or a number. Half a character, which JSON can spell, is no text."""
    if not isinstance(value, (str, int, float)) or _HALF.search(str(value)):
        raise ValueError(f"{what} that is no name, {shortened(ascii(value), 60)}")
    return value


def _require_one(names, argument):
    rule = f"`{argument}` must say which of the answers is meant"
    require(len(names) <= 1, rule, f"{', '.join(sorted(map(str, names)))} in the file")
    return next(iter(names), None)


def _list(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(path):
    check_file("answers", path)
    return pathlib.Path(path).read_text("utf-8-sig")


def _records(text):
    """The records of JSON, one list or a line each."""
    return json.loads(text) if text.lstrip().startswith("[") else _lines(text)


def _lines(text):
    # By line feeds alone: other ends of lines may stand inside of texts.
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _rows(text, path):
    """The rows of a CSV file as dicts."""
    header, *rows = fields(io.StringIO(text, newline=""), path)
    return [dict(zip(header, row, strict=True)) for row in rows]
