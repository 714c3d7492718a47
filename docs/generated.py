"""What no person types on the site: pages and tables from cards, records, notebooks and docstrings.

MkDocs calls the `on_...` functions (`hooks` in mkdocs.yml). A page may hold `<!-- generated: NAME -->`, in
whose place the function of that name in `TABLES` writes Markdown. Nothing here imports TensorFlow.
"""

import base64
import json
import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MEASURED = ROOT / "benchmarks" / "results"

# The order of the pages, by section. Names are paths in docs/ without `.md`. A page of docs/ that is not
# named comes last among the guides; a named page that is absent is left out. Generated pages keep the
# order in which they are generated.
SECTIONS = {
    "Start": ["index", "quick-start", "coming-from"],
    "Guides": [
        "guides/tables",
        "guides/answers",
        "guides/images-and-text",
        "guides/candidates",
        "guides/labels",
        "guides/comparing",
        "guides/tuning",
        "guides/runs",
        "guides/serving",
        "guides/devices",
        "guides/habits",
        "guides/reproducing",
    ],
    "Concepts": [
        "concepts/scores",
        "concepts/method",
        "concepts/why-valen-holds",
        "concepts/defaults",
    ],
    "Methods": [],
    "Notebooks": [],
    "Reference": [],
    "Results": ["results", "costs", "data"],
    "Project": ["contributing", "code-of-conduct", "changelog", "security"],
}
# Pages of the source tree's top -> their names on the site.
OF_ROOT = {
    "RESULTS.md": "results.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
}
# Pages of the API reference -> what each one documents.
REFERENCE = {
    "data": [
        "valen_tf.data.dataset.PartialLabelDataset",
        "valen_tf.data.batches.Batches",
        "valen_tf.data.checking",
        "valen_tf.data.preparation.Preparation",
    ],
    "answers": ["valen_tf.data.answers", "valen_tf.data.annotation_tools"],
    "candidates": ["valen_tf.data.candidates", "valen_tf.data.corruption"],
    "datasets": [
        "valen_tf.data.sets",
        "valen_tf.data.sets.human",
        "valen_tf.data.sets.registry",
        "valen_tf.data.clean_networks",
        "valen_tf.data.cards",
    ],
    "models": [
        "valen_tf.model.base.PartialLabelModel",
        "valen_tf.methods.valen.LabelEnhancement",
        "valen_tf.model.estimator",
    ],
    "methods": ["valen_tf.methods"],
    "callbacks": ["valen_tf.callbacks"],
    "metrics": ["valen_tf.metrics"],
    "networks": ["valen_tf.networks"],
    "tuning": [
        "valen_tf.tuning.searching",
        "valen_tf.tuning.hypermodel",
        "valen_tf.tuning.trials",
        "valen_tf.tuning.comparing.compare",
        "valen_tf.tuning.comparing.Comparison",
    ],
    "reports": ["valen_tf.reports"],
    "export": ["valen_tf.export"],
    "runs": ["valen_tf.runs", "valen_tf.runs.config"],
    "losses": ["valen_tf.losses", "valen_tf.dirichlet", "valen_tf.model.gammas"],
    "graph": ["valen_tf.graph.neighbors", "valen_tf.graph.convolution"],
    "papers": [
        "valen_tf.papers.valen2021.reproduce",
        "valen_tf.papers.valen2021.records",
        "valen_tf.papers.valen2021.results",
    ],
}


# -- MkDocs ---------------------------------------------------------------------------------------


def on_files(files, config):
    """Adds the generated pages, and orders all of them."""
    from mkdocs.structure.files import File

    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    config.nav = navigation([file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown, page, config, files):
    """Writes the generated tables and the formulas of a page."""
    return with_formulas(with_tables(markdown))


def navigation(paths):
    """The pages of the site by section, as mkdocs.yml would have them."""
    sections = {name: [f"{stem}.md" for stem in stems] for name, stems in SECTIONS.items()}
    named = {path for stems in sections.values() for path in stems}
    for path in paths:
        if path in named:
            continue
        folder = path.partition("/")[0].capitalize()
        sections[folder if folder in sections else "Guides"].append(path)
    known = set(paths)
    return [
        {name: [path for path in section if path in known]} for name, section in sections.items()
    ]


# -- pages ----------------------------------------------------------------------------------------


def pages():
    """Paths of the generated pages and images -> their contents."""
    found = {page: of_the_top((ROOT / name).read_text()) for name, page in OF_ROOT.items()}
    found |= method_pages() | reference_pages()
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        found |= notebook_pages(notebook)
    return {path: _escaped(path, content) for path, content in found.items()}


def _escaped(path, content):
    # `<!-- generated: ... -->` of a page that explains the mark is no mark.
    return (
        content.replace("<!-- generated:", "<!-- as in generated:")
        if path.endswith(".md")
        else content
    )


def of_the_top(text):
    """A page from the top of the source tree, its links as the site has them."""
    for name, page in OF_ROOT.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text.replace("](docs/", "](").replace("](README.md", "](index.md")


def method_pages():
    """A page for every method, from its card and its docstrings, and the table of all."""
    from valen_tf import methods

    listing = [
        "# Methods",
        "",
        "All methods take the same data, the same network and the same command.",
        "",
    ]
    listing += [
        "| class | `--method` | what the method learns from | choose the method |",
        "|---|---|---|---|",
    ]
    found = {}
    for cls, card in sorted(
        methods.classes_and_cards(), key=lambda pair: (pair[1].order, pair[1].name)
    ):
        names = " or ".join(f"`{name}`" for name in (card.name, *card.aliases))
        listing.append(
            f"| [`{cls}`]({card.name}.md) | {names} | {card.learns_from} | {card.choose_it} |"
        )
        facts = {
            "Class": f"`valen_tf.methods.{cls}`",
            "On the command line": f"`valen-tf train --method {card.name}`",
            "Learns from": card.learns_from,
            "Choose it": card.choose_it,
            "Kind": "scikit-learn estimator" if card.classical else "Keras model",
            "Without its idea": f"`{card.ablation}`" if card.ablation else "",
            "Optimizer of its literature": _optimizer(card),
            "As published": _settings(card.published),
        }
        rows = [f"| **{name}** | {value} |" for name, value in facts.items() if value]
        found[f"methods/{card.name}.md"] = "\n".join(
            [
                f"# {card.title}",
                "",
                "| | |",
                "|---|---|",
                *rows,
                "",
                f"::: valen_tf.methods.{card.name}.{cls}",
            ]
        )
    return {"methods/index.md": "\n".join(listing), **found}


def _settings(settings):
    return ", ".join(f"`{name}={value!r}`" for name, value in settings.items())


def _optimizer(card):
    if card.classical:
        return ""
    if card.optimizer is None:
        return "SGD of VALEN's paper"
    name, arguments = card.optimizer
    return f"`{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})`"


def reference_pages():
    """The API reference: the docstrings, read by mkdocstrings without importing anything."""
    reference = {
        name: [path for path in paths if _exists(path)] for name, paths in REFERENCE.items()
    }
    listed = {path for paths in reference.values() for path in paths}
    public = public_names()
    more = [f"valen_tf.{name}" for name, path in public.items() if not _covered(path, listed)]
    if more:
        reference["more"] = more
    index = ["# Reference", "", "The names of `import valen_tf as vt`, by subject.", ""]
    found = {}
    for name, paths in reference.items():
        index.append(
            f"- [{name.capitalize()}]({name}.md): " + ", ".join(f"`{path}`" for path in paths)
        )
        blocks = "\n\n".join(f"::: {path}" for path in paths)
        found[f"reference/{name}.md"] = f"# {name.capitalize()}\n\n{blocks}\n"
    index += [
        "",
        "The methods have [pages of their own](../methods/index.md).",
        "",
        "## Public names",
        "",
    ]
    index += ["| `vt.` | stands for |", "|---|---|"]
    index += [f"| `{name}` | `{path}` |" for name, path in public.items()]
    return {"reference/index.md": "\n".join(index), **found}


def _exists(path):
    """Whether the tree has what is documented: a module, or a class or function of one."""
    home, _, name = path.rpartition(".")
    if _source(path):
        return True
    return bool(re.search(rf"^(class|def) {name}\b", _source(home), re.M))


def _source(module):
    """The source of a module, empty where there is none."""
    path = ROOT.joinpath(*module.split("."))
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()]
    return found[0].read_text() if found else ""


def _covered(path, listed):
    """Whether a public name is documented on a page, as a whole, in parts, or where the room defines it."""
    room, _, name = path.rpartition(".")
    return any(
        path == one
        or path.startswith(f"{one}.")
        or one.startswith(f"{path}.")
        or (one.startswith(f"{room}.") and one.endswith(f".{name}"))
        for one in listed
    )


def public_names():
    """Each public name of the package -> the module or object that it stands for."""
    import valen_tf

    found = {}
    for name in sorted(set(valen_tf.__all__) - {"__version__"}):
        home = valen_tf._OBJECTS.get(name)
        found[name] = f"{home}.{name}" if home else valen_tf._ELSEWHERE.get(name, name)
    return {name: f"valen_tf.{path}" for name, path in found.items()}


def notebook_pages(path):
    """A notebook as a page, with its stored outputs; nothing is run."""
    cells = json.loads(path.read_text())["cells"]
    lines, images = [], {}
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            # The badge leads to a service, not to a page.
            lines += [re.sub(r"^\[!\[Open in Colab\].*\n?", "", source, flags=re.M), ""]
            continue
        lines += ["```python", source, "```", ""]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            text = "".join(output.get("text", data.get("text/plain", "")))
            if "image/png" in data:
                image = f"notebooks/{path.stem}/{number}-{len(images)}.png"
                images[image] = base64.b64decode("".join(data["image/png"]))
                lines += [f"![Output of the cell above]({image.removeprefix('notebooks/')})", ""]
            elif "text/html" in data:
                table = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.S)
                # Without a class of its own a table looks like the others of the site.
                lines += [table.replace(' border="1" class="dataframe"', ""), ""]
            elif text.strip():
                lines += [
                    '<div class="output" markdown>',
                    "",
                    "```text",
                    text.rstrip(),
                    "```",
                    "",
                    "</div>",
                    "",
                ]
    lines += [
        f"*The notebook and its source are `notebooks/{path.stem}.ipynb` and `.py` in the source tree.*"
    ]
    return {f"notebooks/{path.stem}.md": "\n".join(lines), **images}


def recovered_picture():
    """The picture of the first page: the quick start's candidates and recovered distributions."""
    (name,) = [
        path
        for path in notebook_pages(ROOT / "notebooks" / "01_quick_start.ipynb")
        if path.endswith("-2.png")
    ]
    return notebook_pages(ROOT / "notebooks" / "01_quick_start.ipynb")[name]


# -- tables from records --------------------------------------------------------------------------


def with_tables(markdown):
    """Markdown with the generated tables in the place of their marks."""
    return re.sub(r"<!-- generated: (\w+) -->", lambda mark: TABLES[mark[1]](), markdown)


def _table(header, rows):
    """A Markdown table; columns of numbers keep to the right."""
    numbers = [
        all(re.match(r"[-+]?\d|$", str(cell)) for cell in cells)
        for cells in zip(*rows, strict=True)
    ]
    lines = [header, ["---:" if number else "---" for number in numbers], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _lines(name):
    path = MEASURED / name
    return [json.loads(line) for line in path.read_text().splitlines()]


def summary():
    """VALEN beside its ablation and the paper, as `valen-tf results --summary` writes it."""
    from valen_tf.papers.valen2021 import records
    from valen_tf.papers.valen2021 import summary as summaries

    # The rest would ask the other methods for their defaults, and so import TensorFlow.
    shown = ("valen", "proden")
    runs = records.read(ROOT / "results" / "records")
    return summaries.markdown([run for run in runs if run["method"] in shown])


def methods_table():
    """The methods as `valen-tf methods` prints them."""
    from valen_tf import methods

    return methods.markdown()


EPOCH_COST = {
    "supervised_epoch_seconds": "an epoch of supervised training, s",
    "valen_epoch_seconds": "an epoch of VALEN, s",
    "epoch_ratio": "VALEN's epoch in supervised ones",
    "epoch_cpu_ratio": "the same by processor time",
    "supervised_step_milliseconds": "a step of supervised training, ms",
    "valen_step_milliseconds": "a step of VALEN, ms",
    "graph_rebuild_seconds": "the first graph, s",
    "graph_recall_at_10": "share of the 10 nearest neighbors that the first graph has",
    "graph_refresh_seconds": "a later graph, s",
    "graph_refresh_recall_at_10": "share of the 10 nearest neighbors that a later graph has",
    "rebuild_share_of_training": "what a graph in ten epochs adds to their time, as a share",
    "peak_gigabytes_supervised_part": "largest memory of supervised training, GB",
    "peak_gigabytes": "largest memory of all, GB",
}


def epoch_cost():
    """VALEN's cost beside supervised training, on MNIST."""
    record = json.loads((MEASURED / "epoch_cost.json").read_text())
    return _table(["what", "measured"], [[EPOCH_COST[key], record[key]] for key in EPOCH_COST])


COSTS = ("", "_baselines", "_resnet32", "_100_classes", "_1000_classes", "_lost")


def baseline_cost():
    """The ratio of an epoch to a supervised one, of every method that was measured."""
    rows = []
    for name in COSTS:
        record = json.loads((MEASURED / f"epoch_cost{name}.json").read_text())
        place = f"{record['network']}, {record['examples']:,} examples, {record['data']}"
        if "classes" in record:
            place += f", {record['classes']:,} classes"
        for key, value in record.items():
            if key.endswith("epoch_ratio"):
                method = key.removesuffix("epoch_ratio").rstrip("_") or "valen"
                cpu = record[key.replace("_ratio", "_cpu_ratio")]
                rows.append([f"`{method}`", place, value, cpu, record.get("load_average", "")])
    header = ["method", "network and data", "time", "processor time", "machine's load"]
    return _table(header, rows)


def half_precision():
    """How many times as fast a network trains that computes in bfloat16."""
    rows = []
    for path in sorted(MEASURED.glob("epoch_cost_bfloat16*.json")):
        record = json.loads(path.read_text())
        rows += [
            [
                record["network"],
                name.removesuffix("_policy_gain"),
                gain,
                record[name.replace("_gain", "_cpu_gain")],
                record["load_average"],
            ]
            for name, gain in record.items()
            if name.endswith("_policy_gain")
        ]
    header = ["network", "training", "times as fast", "by processor time", "machine's load"]
    return _table(header, rows)


SCALE = {
    "examples": "examples",
    "supervised_epoch_seconds": "supervised, s",
    "valen_epoch_seconds": "VALEN, s",
    "epoch_ratio": "ratio",
    "graph_rebuild_seconds": "graph, s",
    "graph_recall_at_10": "recall",
    "graph_refresh_seconds": "refresh, s",
    "graph_refresh_recall_at_10": "recall after",
    "peak_gigabytes": "peak, GB",
}


def scale():
    """Time, memory and recall by the number of examples."""
    sizes = json.loads((MEASURED / "scale.json").read_text())["sizes"]
    rows = [[f"{size['examples']:,}", *(size[key] for key in list(SCALE)[1:])] for size in sizes]
    return _table(list(SCALE.values()), rows)


def tuning_regret():
    """What a choice of lambda and epsilon without true labels loses."""
    import pandas

    rows = []
    for record in _lines("tuning_regret.jsonl"):
        frame = pandas.DataFrame(record["rows"], columns=record["columns"])
        by_default = (frame["lambda"] == 1) & (frame["epsilon"] == 0.01)
        by_fold = frame.groupby("fold")["accuracy"]
        oracle = by_fold.max().mean()
        choices = {
            "an oracle: the test accuracy itself": oracle,
            "the approximated accuracy": _accuracy_of_best(frame, "approximated_accuracy"),
            "the covering rate": _accuracy_of_best(frame, "covering_rate"),
            "nobody: the defaults": frame.loc[by_default, "accuracy"].mean(),
            "a random draw, on average": by_fold.mean().mean(),
            "the worst pair": by_fold.min().mean(),
        }
        for name, accuracy in choices.items():
            rows.append([record["data"], name, f"{accuracy:.2f}", f"{oracle - accuracy:.2f}"])
    return _table(["data", "who chooses", "accuracy, %", "regret, points"], rows)


def _accuracy_of_best(frame, score):
    """The accuracy of the pairs with the highest score of their fold, those that share it by their mean."""
    best = frame[frame[score] == frame.groupby("fold")[score].transform("max")]
    return best.groupby("fold")["accuracy"].mean().mean()


def edges():
    """VALEN beside its ablation by the share of right edges."""
    import pandas

    frame = pandas.DataFrame(_lines("edges.jsonl")).groupby("share").mean(numeric_only=True)
    rows = [
        [
            f"{share:.2f}",
            f"{row.trust:.2f}",
            f"{row.ablation:.2f}",
            f"{row.valen:.2f}",
            f"{row.valen - row.ablation:+.2f}",
        ]
        for share, row in frame.iterrows()
    ]
    return _table(
        ["edges that are right", "trust", "without label enhancement", "VALEN", "difference"], rows
    )


def drift():
    """What becomes of VALEN's loss and of its encoder, with each safeguard and each term left out."""
    courses = {}
    for run in _lines("drift.jsonl"):
        courses.setdefault(run["variant"], []).append(run)
    epochs = sorted({run["epoch"] for course in courses.values() for run in course})
    rows = []
    for variant, course in courses.items():
        losses = {run["epoch"]: f"{run['loss']:.3f}" for run in course}
        last = course[-1]
        parts = ("risk", "compatibility", "weights", "active", "covering_rate", "log_probability")
        numbers = [f"{last[part]:.3f}" if part in last else "" for part in parts]
        rows.append([variant, *(losses.get(epoch, "") for epoch in epochs), *numbers])
    header = [
        "variant",
        *(f"loss, epoch {epoch}" for epoch in epochs),
        "R_V",
        "compatibility",
        "size of the first layer's weights",
        "active hidden units",
        "held-out covering rate",
        "held-out log probability",
    ]
    return _table(header, rows)


EPOCHS = (20, 50, 100, 200, 300, 400, 450, 500)


def _course(run, term, form):
    """What a run's record has of a term at `EPOCHS`."""
    course = dict(zip(run["course"]["epoch"], run["course"][term], strict=True))
    return [form(course[epoch]) for epoch in EPOCHS]


def _percent(share):
    return f"{100 * share:.2f}"


def earlier_targets():
    """Fashion-MNIST under both targets: accuracy and risk by the epoch."""
    rows = []
    for run in _lines("earlier_defaults.jsonl"):
        if run["data"] == "fashion_mnist":
            name, recovered = run["what"].partition(",")[0], _percent(run["recovered"])
            rows.append([name, "accuracy", *_course(run, "accuracy", _percent), recovered])
            rows.append(["", "R_V", *_course(run, "classification", "{:.3f}".format), ""])
    return _table(["target", "", *EPOCHS, "labels recovered"], rows)


def _first_trial(table, data, method):
    """The record of a method's first trial."""
    lines = (ROOT / "results" / "records" / f"{table}.jsonl").read_text().splitlines()
    wanted = (data, method, 0)
    (run,) = [
        run
        for run in map(json.loads, lines)
        if (run["data"], run["method"], run["trial"]) == wanted
    ]
    return run


def low_trust():
    """20 Newsgroups with instance-dependent sets, first fold, under both targets."""
    mixture = [run for run in _lines("earlier_defaults.jsonl") if run["data"] == "20newsgroups"]
    product = _first_trial("table3", "20newsgroups", "valen")
    rows = [
        [name, *_course(run, "accuracy", _percent), _percent(run["recovered"])]
        for name, run in [*(("mixture", run) for run in mixture), ("product", product)]
    ]
    ablation = _first_trial("table3", "20newsgroups", "proden")
    courses = [*([""] * (len(EPOCHS) - 1)), _percent(ablation["accuracy"])]
    rows.append(["without label enhancement", *courses, _percent(ablation["recovered"])])
    return _table(["target", *EPOCHS, "labels recovered"], rows)


def whole_schedule():
    """VALEN on Kuzushiji-MNIST over the paper's whole schedule."""
    run = _first_trial("table1", "kmnist", "valen")
    rows = [
        ["accuracy, %", *_course(run, "accuracy", _percent)],
        ["loss", *_course(run, "loss", "{:.3f}".format)],
        ["R_V", *_course(run, "classification", "{:.3f}".format)],
    ]
    return _table(["epoch", *EPOCHS], rows)


def label_report():
    """How often the first labels of the report are wrong, in multiples of chance."""
    rows = [
        [
            run["data"],
            f"`{run['method']}`",
            f"{run['wrong']:.3f}",
            *(f"{run[name]:.2f}" for name in ("lift", "lift_certainty", "lift_entropy", "largest")),
            "" if run["missing_first_quarter"] is None else f"{run['missing_first_quarter']:.3f}",
        ]
        for run in _lines("label_report.jsonl")
    ]
    header = ["data", "method", "wrong labels", "report", "by certainty", "by entropy", "at most"]
    return _table([*header, "missing truth"], rows)


def prediction_sets():
    """What prediction sets asked for at 90 % cover, and how large they are."""
    rows = [
        [
            run["data"],
            f"`{run['method']}`",
            f"{run['accuracy']:.3f}",
            f"{run['covered']:.3f}",
            f"{run['size']:.1f}",
            f"{run['guaranteed_covered']:.3f}",
            f"{run['guaranteed_size']:.1f}",
            f"{run['ece']:.3f}",
            f"{run['ece_after']:.3f}",
            f"{run['ece_least']:.3f}",
        ]
        for run in _lines("coverage.jsonl")
    ]
    header = ["data", "method", "accuracy", "covered", "size", "covered, guaranteed"]
    return _table([*header, "size, guaranteed", "error before", "error after", "at least"], rows)


def crowd():
    """The accuracy of a network that was trained on people's answers, by what is made of the answers."""
    return _crowd("accuracies")


def crowd_recovered():
    """The share of the training labels that each way to read people's answers recovers."""
    return _crowd("recovered")


def _crowd(figure):
    cells = {}
    for run in _lines("crowd.jsonl"):
        cells.setdefault(run["data"], {})[run["row"]] = run[figure]
    # In the order of the data set that has most of them.
    by_number = sorted(cells.values(), key=len, reverse=True)
    ways = list(dict.fromkeys(way for by_way in by_number for way in by_way))
    if figure == "recovered":  # which the truth does not have to be
        ways = [way for way in ways if way != "the truth"]
    rows = []
    for data, by_way in cells.items():
        shown = [_spread(by_way[way]) if way in by_way else "" for way in ways]
        seeds = sorted({len(values) for values in by_way.values()})
        rows.append([data, *shown, " or ".join(map(str, seeds))])
    return _table(["%", *ways, "seeds"], rows)


def _spread(values):
    """Mean and deviation, where there are several that differ."""
    if len(set(values)) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"


def missing_truth():
    """What sets without the truth cost, and what an estimated coverage wins back."""
    groups, rows = {}, []
    for run in _lines("missing_truth.jsonl"):
        groups.setdefault((run["data"], run["method"]), {}).setdefault(run["missing"], []).append(
            run
        )
    for (data, method), by_share in groups.items():
        for share, runs in sorted(by_share.items()):
            row = [data, f"`{method}`", f"{100 * share:.0f} %"]
            for place in (0, 1):  # accuracy, labels recovered
                plain, judged = (
                    statistics.mean(run[key][place] for run in runs) for key in ("1", "estimate")
                )
                lost = statistics.mean(run["1"][place] for run in by_share[0.0]) - plain
                won = f"{100 * (judged - plain) / lost:.0f} %" if lost > 0 else ""
                row += [f"{plain:.2f}", f"{judged:.2f}", won]
            coverage = statistics.mean(run["estimate"][2] for run in runs)
            rows.append([*row, f"{coverage:.1f}", len(runs)])
    header = ["data", "method", "without the truth", "accuracy, sets as they are"]
    header += ["coverage estimated", "won back", "recovered, sets as they are"]
    return _table([*header, "coverage estimated", "won back", "estimate, %", "seeds"], rows)


def mixed_table():
    """Seconds and memory of reading, checking and preparing a large mixed table."""
    record = json.loads((MEASURED / "mixed_table.json").read_text())
    ours = record["valen_tf"]["seconds"]
    parts = {**record["pandas"]["seconds"], **ours}
    parts["all but pandas.read_csv"] = [sum(pair) for pair in zip(*ours.values(), strict=True)]
    rows = [
        [name, f"{clock:.2f}", f"{processor:.2f}"] for name, (clock, processor) in parts.items()
    ]
    peak = f"{record['valen_tf']['peak'] / 2**20:.2f} GB"
    what = f"{record['rows']:,} rows, 50 columns; peak {peak}"
    if "load_average" in record:
        what += f"; machine's load {record['load_average']}"
    header = [what, "clock, s", "processor, s"]
    return _table(header, rows)


COST_OF_PAGES = ["page of MNIST", "cores", "load", "clock, s", "processor, s", "size, MB"]


def report_cost():
    """Seconds and size of the label report."""
    rows = [
        [
            f"{run['examples']:,} examples, {'with' if run['pictures'] else 'without'} pictures",
            run["cores"],
            run["load_average"],
            run["seconds"],
            run["processor_seconds"],
            run["megabytes"],
        ]
        for run in _lines("label_report_cost.jsonl")
    ]
    return _table(COST_OF_PAGES, rows)


COST_OF_COMPARISON = {
    "methods": "methods",
    "trainings": "trainings",
    "jobs": "`--jobs`",
    "cores": "cores",
    "load_average": "load",
    "seconds": "clock, s",
    "processor_seconds": "processor, s",
}


def comparison_cost():
    """Seconds of a comparison of all methods on Lost."""
    runs = list(_lines("comparison_cost.jsonl"))
    rows = [[name, *(run[key] for run in runs)] for key, name in COST_OF_COMPARISON.items()]
    return _table(["what", *("measured" for _ in runs)], rows)


def choice_of_methods():
    """How well each label-free score orders methods, and what a choice by the score loses."""
    runs, rows = _lines("comparison.jsonl"), []
    for score in runs[0]["points_lost"]:
        losses = [run["points_lost"][score] for run in runs]
        correlations = [run["rank_correlation"].get(score) for run in runs]  # of the choice: none
        mean = "" if None in correlations else f"{statistics.mean(correlations):.2f}"
        near = sum(loss <= 1.0 for loss in losses)
        rows.append(
            [
                "what `compare` takes" if score == "choice" else score.replace("_", " "),
                mean,
                f"{statistics.mean(losses):.2f}",
                f"{near} of {len(runs)}",
            ]
        )
    header = ["score", "rank correlation", "points lost", "within a point of the best"]
    return _table(header, rows)


def graph_weights():
    """The approximated accuracy of VALEN by the weight of the graph's term."""
    runs = [run for run in _lines("choices.jsonl") if "graph_weight" in (run["settings"] or {})]
    return _choices(runs, "graph_weight", "approximated_accuracy")


def corrections():
    """The covering rate of GA by its correction."""
    return _choices_of("ga", "correction")


def fit_weights():
    """The covering rate of PLLE by the weight of the fit."""
    return _choices_of("plle", "fit_weight")


def intercepts():
    """The covering rate of CLPL with and without intercept."""
    return _choices_of("clpl", "intercept")


def _choices_of(method, setting):
    runs = [run for run in _lines("choices.jsonl") if run.get("method") == method]
    return _choices(runs, setting, "covering_rate")


def _choices(runs, setting, score):
    """A label-free score by the value of a setting: each data set's mean, over folds and procedures."""
    import pandas

    frame = pandas.DataFrame(
        {
            "value": [run["settings"][setting] for run in runs],
            "seed": [run.get("seed") or 0 for run in runs],
            "data": [run["data"] for run in runs],
            "score": [statistics.mean(run[score]) for run in runs],
        }
    )
    table = frame.pivot_table(index=["seed", "value"], columns="data", values="score", sort=True)
    average = frame.groupby(["seed", "value"])[
        "score"
    ].mean()  # every data set and procedure counts one
    rows = [
        [str(value).lower(), seed, *(f"{one:.2f}" for one in row), f"{average[seed, value]:.2f}"]
        for (seed, value), row in table.iterrows()
    ]
    return _table(
        [f"`{setting}`", "seed", *(f"`{name}`" for name in table.columns), "average"], rows
    )


TABLES = {
    "summary": summary,
    "methods": methods_table,
    "epoch_cost": epoch_cost,
    "baseline_cost": baseline_cost,
    "scale": scale,
    "tuning_regret": tuning_regret,
    "edges": edges,
    "drift": drift,
    "earlier_targets": earlier_targets,
    "low_trust": low_trust,
    "whole_schedule": whole_schedule,
    "label_report": label_report,
    "prediction_sets": prediction_sets,
    "choice_of_methods": choice_of_methods,
    "crowd": crowd,
    "crowd_recovered": crowd_recovered,
    "missing_truth": missing_truth,
    "mixed_table": mixed_table,
    "report_cost": report_cost,
    "comparison_cost": comparison_cost,
    "half_precision": half_precision,
    "graph_weights": graph_weights,
    "corrections": corrections,
    "fit_weights": fit_weights,
    "intercepts": intercepts,
}


# -- formulas -------------------------------------------------------------------------------------


def with_formulas(markdown):
    """Markdown whose `$$...$$` and `$...$` are MathML, which browsers show without any script.

    Code is left as it is.
    """
    if "$" not in markdown:
        return markdown
    from latex2mathml.converter import convert

    pieces = re.split(r"(```.*?```|~~~.*?~~~|`[^`\n]*`)", markdown, flags=re.S)
    for place in range(0, len(pieces), 2):
        text = re.sub(
            r"\$\$(.+?)\$\$",
            lambda m: convert(m[1].strip(), display="block"),
            pieces[place],
            flags=re.S,
        )
        # In a span, since Markdown takes an element like <math> at the beginning of a line for a block.
        pieces[place] = re.sub(
            r"\$([^\s$][^$\n]*?)\$", lambda m: f"<span>{convert(m[1])}</span>", text
        )
    return "".join(pieces)


if __name__ == "__main__":
    (DOCS / "images" / "recovered.png").write_bytes(recovered_picture())
