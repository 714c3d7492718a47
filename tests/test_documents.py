"""The README and the site: snippets run as printed, links lead somewhere, questions find their answers.

A snippet that is not run has a comment before it that says why: `<!-- not run: needs two machines -->`.
"""

import ast
import functools
import importlib
import json
import os
import pathlib
import posixpath
import re
import shlex
import shutil
import subprocess
import sys
import time

import pytest

import valen_tf as vt
from valen_tf import cli

ROOT = pathlib.Path(vt.__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
SNIPPET = re.compile(
    r"(?:<!-- not run: (?P<why>.*?) -->\n)?```(?P<kind>\w+)\n(?P<code>.*?)^```", re.M | re.S
)
# What new users ask -> the page with the answer, and words of the answer.
QUESTIONS = {
    "My labels are in a column with commas": ("guides/tables.md", 'separator=","'),
    "How do I know that training worked without labels": (
        "concepts/scores.md",
        "Compare the covering rate with chance",
    ),
    "Can I use PyTorch weights": ("coming-from.md", "load_clean_network"),
    "Several people labeled each example": ("guides/answers.md", "from_answers"),
    "Can I use my own network": (
        "guides/images-and-text.md",
        "any functional or sequential Keras model",
    ),
    "Which method should I use": ("guides/comparing.md", "valen-tf compare"),
    "What does each method learn from": ("methods/index.md", "choose the method"),
    "Which of my labels are probably wrong": ("guides/labels.md", "report.html"),
    "Some candidate sets miss the true label": ("guides/candidates.md", "settings.coverage"),
    "My table has words, dates and gaps": ("guides/tables.md", "What becomes of the columns"),
    "I have pictures": ("guides/images-and-text.md", "from_images"),
    "I have texts": ("guides/images-and-text.md", "from_texts"),
    "How sure is a prediction": ("guides/labels.md", "--coverage 0.9"),
    "What is in a run folder": ("guides/runs.md", "label_distributions.csv"),
    "When should I not use this package": ("quick-start.md", "## When not to use it"),
    "My run was killed": ("guides/runs.md", "Give the same command again"),
    "How do I put the model behind a server": ("guides/serving.md", "tensorflow_model_server"),
    "My features do not fit into memory": ("guides/tables.md", "mmap_mode"),
    "How long does training take": ("costs.md", "supervised training"),
    "How do I choose settings without true labels": ("guides/tuning.md", "best.yaml"),
    "May I open a stranger's model file": ("security.md", "What may come from strangers"),
    "Do the results agree with the paper": ("results.md", "Where VALEN falls short"),
}


@functools.cache
def generated():
    """The module that writes the generated pages."""
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("generated")
    finally:
        sys.path.remove(str(DOCS))


@functools.cache
def site():
    """Paths of all pages of the site -> their Markdown."""
    pages = {path: text for path, text in generated().pages().items() if path.endswith(".md")}
    return pages | {str(page.relative_to(DOCS)): page.read_text() for page in PAGES[1:]}


def snippets(page):
    """`(kind, code, why it is not run)` of the code blocks of a page."""
    for found in SNIPPET.finditer(page.read_text()):
        yield found["kind"], found["code"], found["why"]


def commands(code):
    """The words of each command of a shell snippet."""
    for line in code.replace("\\\n", " ").splitlines():
        for words in re.split(r"\s&&\s", line):
            if words := shlex.split(words, comments=True):
                yield words


def of_pages(kind):
    cases = [(page, code) for page in PAGES for each, code, _ in snippets(page) if each == kind]
    return pytest.mark.parametrize(
        ("page", "code"),
        cases,
        ids=[f"{page.stem}-{place}" for place, (page, _) in enumerate(cases)],
    )


@of_pages("python")
def test_a_python_snippet_names_what_exists(page, code):
    for node in ast.walk(ast.parse(code)):
        chain = []
        while isinstance(node, ast.Attribute):
            chain.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id == "vt":
            found = vt
            for name in reversed(chain):
                assert hasattr(found, name), f"{page.name}: vt.{'.'.join(reversed(chain))}"
                found = getattr(found, name)


@of_pages("bash")
def test_a_shell_snippet_names_commands_and_values_that_exist(page, code, monkeypatch):
    monkeypatch.chdir(ROOT)
    parsed = importlib.import_module("valen_tf.cli.main")._parsed
    for words in commands(code):
        if words[0].endswith("valen-tf"):
            options = parsed(words[1:])
            if "overrides" in options and not (
                options.config and not os.path.exists(options.config)
            ):
                vt.runs.read_config(options.config, options.overrides)
        for word in words:
            if word.startswith(("examples/", "benchmarks/", "notebooks/")):
                assert pathlib.Path(word).exists(), word


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_that_a_page_names_are_in_the_tree(page):
    for program in re.findall(
        r"(?:`|python )((?:benchmarks|examples|tests|notebooks)/[\w./]+\.\w+)", page.read_text()
    ):
        assert (ROOT / program).exists(), program


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_snippet_that_is_not_run_says_why(page):
    for kind, code, why in snippets(page):
        assert kind in ("python", "bash", "text", "yaml", "json", "csv")
        if why is None and kind == "bash":
            others = [words[0] for words in commands(code) if words[0] != "valen-tf"]
            assert not others, f"{others[0]} cannot be run here: say why by <!-- not run: ... -->"
        if why is not None:
            assert len(why.split()) >= 3


def links(path, text):
    """The pages of the site that a page links to, without anchors."""
    for target in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"```.*?^```", "", text, flags=re.S | re.M)
    ):
        if "://" not in target and target.partition("#")[0].endswith(".md"):
            yield posixpath.normpath(
                posixpath.join(posixpath.dirname(path), target.partition("#")[0])
            )


@pytest.mark.parametrize("front", ["the site", "the README"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_new_user_finds_the_answer_within_two_clicks(question, front):
    page, words = QUESTIONS[question]
    readme = generated().of_the_top(PAGES[0].read_text())
    first = set(links("index.md", site()["index.md"] if front == "the site" else readme))
    second = {there for path in first for there in links(path, site()[path])}
    assert page in first | second
    assert words.lower() in " ".join(site()[page].lower().split())


def test_the_readme_is_one_screen_or_two():
    assert len(PAGES[0].read_text().splitlines()) <= 150


def test_every_link_of_the_readme_leads_to_a_place():
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[0].read_text()):
        path, _, anchor = target.partition("#")
        if "://" not in target:
            assert (ROOT / path).exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.M)
            assert anchor in [
                re.sub(r"\W+", "-", heading.lower()).strip("-") for heading in headings
            ]


def test_the_navigation_takes_pages_that_are_absent_and_pages_that_are_new():
    navigation = generated().navigation(
        ["index.md", "guides/new.md", "other.md", "methods/valen.md"]
    )
    sections = {name: pages for section in navigation for name, pages in section.items()}
    assert sections["Start"] == ["index.md"]
    assert sections["Guides"] == ["guides/new.md", "other.md"]
    assert sections["Methods"] == ["methods/valen.md"]


def test_every_public_name_has_a_place_in_the_reference():
    reference = {path: text for path, text in site().items() if path.startswith("reference/")}
    documented = {
        path for text in reference.values() for path in re.findall(r"^::: (\S+)", text, re.M)
    }
    for name, path in generated().public_names().items():
        assert generated()._covered(path, documented) or f"valen_tf.{name}" in documented
    for card in vt.methods.cards():
        if card.name in {module.stem for module in (ROOT / "valen_tf" / "methods").glob("*.py")}:
            assert f"# {card.title}\n" in site()[f"methods/{card.name}.md"]


def test_tables_come_from_records():
    text = generated().with_tables("<!-- generated: epoch_cost -->")
    cost = json.loads((ROOT / "benchmarks" / "results" / "epoch_cost.json").read_text())
    assert f"| {cost['graph_recall_at_10']} |" in text
    assert f"{cost['epoch_ratio']} times as long" in PAGES[0].read_text()
    for page in PAGES[1:]:
        for name in re.findall(r"<!-- generated: (\w+) -->", page.read_text()):
            assert generated().TABLES[name]().count("\n") > 2


def test_the_picture_is_that_of_the_notebook():
    assert (DOCS / "images" / "recovered.png").read_bytes() == generated().recovered_picture()


def test_formulas_become_mathml_and_code_stays():
    text = generated().with_formulas("$x_i$, `$y` costs\n```\n$z$\n```\n$$\\sum_j a_j$$")
    assert text.count("<math") == 2 and "`$y`" in text and "\n$z$\n" in text


def test_the_site_builds_without_warnings_and_without_tensorflow(tmp_path):
    pytest.importorskip("mkdocs", reason='the site needs pip install ".[docs]"')
    program = (
        "import sys; sys.modules['tensorflow'] = None; from mkdocs.__main__ import cli; "
        "cli(['build', '--strict', '--site-dir', sys.argv[1]])"
    )
    started = time.monotonic()
    built = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert time.monotonic() - started < 120
    pages = {path: path.read_text() for path in (tmp_path / "site").rglob("*.html")}
    assert len(pages) > 50
    for path, text in pages.items():
        fetched = re.findall(
            r'<(?:script|img|link|iframe)[^>]*(?:src|href)="?(https?://[^" >]+)', text
        )
        assert not fetched, f"{path} fetches {fetched[0]}"
        assert "<!-- generated:" not in text


def scores_are(expected, output):
    """Compares the percentages of a text block with what a command printed."""
    scores = re.findall(r"^(\w.*?) +([\d.]+) %$", expected, re.M)
    assert scores
    for name, score in scores:
        (found,) = re.findall(rf"{re.escape(name)}[ │]+([\d.]+) %", output)
        assert float(found) == pytest.approx(float(score), abs=1.5)  # processors round differently


@pytest.mark.slow
def test_the_first_command_of_the_readme_ends_as_printed(tmp_path):
    (command,) = [code for kind, code, _ in snippets(PAGES[0]) if "venv/bin/valen-tf train" in code]
    printed = next(code for kind, code, _ in snippets(PAGES[0]) if kind == "text")
    hidden = shutil.ignore_patterns(".*", "site", "build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "tree", ignore=hidden)
    shutil.rmtree(tmp_path / "tree" / "runs", ignore_errors=True)
    python = pathlib.Path(sys.executable).parent
    path = f"{python}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "120"}
    environment.pop("PYTHONPATH", None)
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path / "tree",
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    scores_are(printed, ended.stdout)
    assert (tmp_path / "tree" / "runs" / "digits" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem)
        for page in PAGES
        if any(why is None for _, _, why in snippets(page))
    ],
)
def test_the_snippets_of_a_page_run_as_printed(page, tmp_path, monkeypatch, capsys):
    for folder in ("configs", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")  # or the table of scores has broken lines
    names, output = {"__name__": "__main__"}, ""
    for kind, code, why in snippets(page):
        if kind == "text" and output:
            scores_are(code, output)
        output = ""
        if why is not None:
            continue
        if kind == "python":
            exec(compile(code, str(page), "exec"), names)
        elif kind == "bash":
            for words in commands(code):
                assert words[0] == "valen-tf", f"how to run {words}?"
                assert cli.main(words[1:]) == 0, words
            output = capsys.readouterr().out
