"""The exports of annotation tools as one long table of answers: item, annotator, label, excludes.

Each function reads the files of one tool and gives a pandas frame with a row for every answer, in which
`label` and `excludes` hold lists of names, and the columns of the task itself (its text, the name of its
picture) begin with `data.`. `PartialLabelDataset.from_answers` takes the frame as it is. Drafts, cancelled
and ignored answers are left out; an answer that rejects a label excludes it.
"""

from __future__ import annotations

import json
import pathlib
import zipfile
from typing import TYPE_CHECKING

from valen_tf.checks import check_file, require

if TYPE_CHECKING:
    import pandas

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
    records = _json(path)
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
    path = pathlib.Path(path)
    if path.suffix == ".csv":
        return _frame(_label_studio_flat(_csv(path), name), path)
    tasks = _json(path)
    nested = any("annotations" in task or "completions" in task for task in tasks)
    read = _label_studio_tasks if nested else _label_studio_flat
    return _frame(read(tasks, name), path)


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
            labels = [label for result in results for label in result["value"]["choices"]]
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
    return _frame(_argilla(_json(path), question), path)


def _argilla(records, question):
    for record in records:
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
    path = pathlib.Path(path)
    if path.is_dir():
        texts = {file.name: file.read_text("utf-8") for file in sorted(path.iterdir())}
    elif not zipfile.is_zipfile(path):  # one member's file
        texts = {path.name: path.read_text("utf-8")}
    else:
        # Members are read in memory: no name in an archive becomes a file.
        with zipfile.ZipFile(path) as archive:
            texts = {name: archive.read(name).decode("utf-8") for name in archive.namelist()}
    return _frame(_doccano(texts), path)


def _doccano(texts):
    import io

    for name, text in texts.items():
        file = pathlib.PurePosixPath(name)
        if file.suffix == ".csv":
            records = _csv(io.StringIO(text))
        elif file.suffix == ".jsonl":
            records = _lines(text)
        else:
            continue
        for record in records:
            labels = record.get("label") or []
            labels = labels.split("#") if isinstance(labels, str) else list(labels)
            data = {key: value for key, value in record.items() if key not in ("id", "label")}
            yield record["id"], file.stem, labels, [], data


def prodigy(path: pathlib.Path | str) -> pandas.DataFrame:
    """Answers in an export of Prodigy, the JSON lines of `db-out`.

    Of a task with options the accepted ones are the labels. Of a binary task, which asks for one label,
    `accept` gives the label and `reject` excludes it.

    Args:
        path: The file.

    Returns:
        A pandas frame.
    """
    return _frame(_prodigy(_json(path)), path)


def _prodigy(records):
    for record in records:
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


def _frame(answers, path):
    """The long table of `(item, annotator, labels, excluded labels, data)`."""
    import pandas as pd

    try:
        rows = [
            {
                "item": item,
                "annotator": "unknown" if annotator is None else str(annotator),
                "label": [str(label) for label in labels],
                "excludes": [str(label) for label in excludes],
                **{f"data.{key}": value for key, value in data.items()},
            }
            for item, annotator, labels, excludes, data in answers
            if labels or excludes
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is not an export in the tool's form: {type(error).__name__}: {error}"
        ) from error
    require(len(rows) > 0, f"{path} must hold an answer", "none that was given and submitted")
    return pd.DataFrame(rows)


def _require_one(names, argument):
    rule = f"`{argument}` must say which of the answers is meant"
    require(len(names) <= 1, rule, f"{', '.join(sorted(map(str, names)))} in the file")
    return next(iter(names), None)


def _list(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def _json(path):
    """The records of a JSON file, one list or a line each."""
    text = pathlib.Path(path).read_text("utf-8")
    try:
        return json.loads(text) if text.lstrip().startswith("[") else _lines(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} must be JSON, a list or a record in each line: {error}"
        ) from error


def _lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _csv(source):
    import pandas as pd

    frame = pd.read_csv(source, dtype=str, keep_default_na=False)
    return frame.to_dict("records")
