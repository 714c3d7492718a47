"""The label report: what it ranks by, what it says, and that the page works in a browser."""

import json
import pathlib
import re
import shutil

import keras
import numpy as np
import pandas as pd
import pytest
from conftest import blobs, compiled, schedule
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import valen_tf as vt
from valen_tf.cli.main import main
from valen_tf.data.answers import Answers
from valen_tf.data.corrections import corrected, read_corrections
from valen_tf.data.harmless import printable
from valen_tf.reports import agreement, opinions, page
from valen_tf.reports.curves import curves_page
from valen_tf.reports.evidence import gather
from valen_tf.runs.watching import TrainingPage

NAMES_OF_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES_OF_CHROMIUM)), None)
DRIVER = shutil.which("chromedriver")
NAMES = ["</script><script>window.broken = 1</script>", "<img src=x onerror='broken=1'>", "=2+2"]


def named(dataset, names=NAMES):
    return vt.PartialLabelDataset(
        dataset.features, dataset.candidates, dataset.labels, class_names=names
    )


def with_misses(num_examples=300, every=10):
    """Clusters of which every tenth set lacks the true label and names another class."""
    data = blobs(num_examples, spread=0.3, flip=0.3)
    candidates = data.candidates.copy()
    missed = np.arange(num_examples) % every == 0
    candidates[missed] = np.eye(3, dtype=np.uint8)[(data.labels[missed] + 1) % 3]
    return vt.PartialLabelDataset(data.features, candidates, data.labels), missed


# -- the order ----------------------------------------------------------------------------------------


def test_the_example_itself_has_no_say_in_the_opinion_of_the_others():
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(40, 3)).astype("float32"), rng.dirichlet(np.ones(4), 40)
    predictions = opinions.left_one_out(inputs, targets, penalty=2.0)
    targets[7] = [1, 0, 0, 0]
    changed = opinions.left_one_out(inputs, targets, penalty=2.0)
    assert np.allclose(predictions[7], changed[7], atol=1e-5)
    assert not np.allclose(predictions[8], changed[8], atol=1e-5)


@pytest.mark.parametrize("width", [200, 3000])
def test_neighbors_of_wide_features_are_those_of_their_principal_components(width):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(80, 5))
    wide = (hidden @ rng.normal(size=(5, width))).astype("float32")
    components = opinions.searched(wide - wide.mean(axis=0))
    assert components.shape == (80, min(64, components.shape[1]))
    near, far = (
        np.linalg.norm(values[:, None] - values[None], axis=2)
        for values in (components, wide / wide.std())
    )
    apart = np.triu_indices(80, 1)
    assert np.corrcoef(near[apart], far[apart])[0, 1] > 0.99


def test_sets_that_miss_the_truth_are_found_without_a_true_label():
    data, missed = with_misses()
    unlabeled = vt.PartialLabelDataset(data.features, data.candidates)
    model = vt.methods.PLKNN().fit(unlabeled)
    evidence = gather(model, unlabeled)
    first = np.argsort(-evidence.missing_truth, kind="stable")[: missed.sum()]
    assert missed[first].mean() > 0.9
    found = evidence.reasons[:, 0]
    assert (evidence.suggested[found] == data.labels[found]).mean() > 0.95
    labeled = gather(vt.methods.PLKNN().fit(data), data)
    assert (labeled.order == evidence.order).all()


def test_the_first_labels_hold_more_wrong_ones_than_chance(real_data):
    train, _ = vt.datasets.load("lost", real_data / "realworld").folds(5)[0]
    model = make_pipeline(StandardScaler(), vt.methods.PLLE()).fit(train.features, train.candidates)
    evidence = gather(model, train)
    wrong = evidence.recovered != train.labels
    assert wrong[evidence.order[: len(wrong) // 10]].mean() > 2 * wrong.mean()


def test_nearly_equal_examples_with_disjoint_sets_are_named():
    data = blobs(60)
    features, candidates = data.features.copy(), data.candidates.copy()
    features[1] = features[0] + 1e-5
    candidates[0], candidates[1] = [1, 0, 0], [0, 1, 1]
    data = vt.PartialLabelDataset(features, candidates)
    frame = vt.label_frame(vt.methods.PLKNN().fit(data), data).set_index("row")
    twins = frame["reasons"].str.contains("contradictory twins")
    assert twins[[0, 1]].all() and twins.sum() == 2


# -- the frame ----------------------------------------------------------------------------------------


def test_the_frame_tells_of_every_training_example_once(tmp_path):
    data = named(blobs(90))
    model = compiled(vt.Valen, data)
    model.fit(data, epochs=4, verbose=0, callbacks=schedule())
    frame = vt.label_frame(model, data)
    assert frame["place"].tolist() == list(range(1, 91))
    assert sorted(frame["row"]) == list(range(90))
    by_row = frame.sort_values("row")
    recovered = model.label_distributions()
    assert np.allclose(by_row["certainty"], recovered.max(axis=1))
    assert (by_row["recovered"] == np.array(NAMES)[recovered.argmax(axis=1)]).all()
    assert frame["mutual_information"].between(0, np.log(3)).all()
    assert (frame["posterior_entropy"] >= frame["mutual_information"]).all()
    vt.reports.write_frame(frame, tmp_path / "labels.csv")
    assert "'=2+2" in set(pd.read_csv(tmp_path / "labels.csv")["recovered"])
    with pytest.raises(ValueError, match="must be the training part"):
        vt.label_frame(model, blobs(91))


def test_mutual_information_is_that_of_samples():
    rng = np.random.default_rng(0)
    concentration = np.array([[0.4, 2.0, 1.1]])
    samples = rng.dirichlet(concentration[0], 40_000)
    entropies = -(samples * np.log(np.maximum(samples, 1e-300))).sum(axis=1)
    entropy, information = vt.reports.posterior_uncertainty(concentration)
    error = entropies.std() / np.sqrt(len(entropies))
    assert abs(entropy[0] - information[0] - entropies.mean()) < 4 * error


def test_krippendorffs_alpha_is_that_of_the_textbook():
    # The example with gaps of Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.
    said = {
        "A": [0, 0, 0, 0, 0, 3, 4, 1, 2, 1, 1, 3, 3, 0, 3],
        "B": [1, 0, 2, 1, 3, 3, 4, 3, 0, 0, 0, 0, 0, 0, 0],
        "C": [0, 0, 2, 1, 3, 4, 4, 0, 2, 1, 1, 3, 3, 0, 4],
    }
    rows = [(i, a, v - 1) for a, who in enumerate(said) for i, v in enumerate(said[who]) if v]
    example, annotator, label = np.array(rows).T
    answers = Answers(example, annotator, label, num_examples=15, num_classes=4)
    assert vt.reports.krippendorff_alpha(answers) == pytest.approx(0.691, abs=5e-4)
    assert "tentative" in agreement.words(0.691)
    alone = Answers([0, 1], [0, 0], [0, 1], num_examples=2, num_classes=2)
    assert np.isnan(vt.reports.krippendorff_alpha(alone))


# -- corrections --------------------------------------------------------------------------------------


def test_corrections_take_the_place_of_candidate_sets(tmp_path):
    data = named(blobs(30)).take(slice(10, 30))
    path = tmp_path / "corrections.csv"
    path.write_text("row,label\n12,'=2+2\n3,'=2+2\n")
    changed = corrected(data, read_corrections(path))
    assert changed.candidates[2].tolist() == [0, 0, 1]  # row 12; row 3 is in another part
    assert (np.delete(changed.candidates, 2, 0) == np.delete(data.candidates, 2, 0)).all()


def test_corrections_name_classes_as_the_page_shows_them(tmp_path):
    names = [
        "a\x1b[2J",
        "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627",
        "=c",
    ]  # the second one is Persian
    data = named(blobs(5), names)
    path = tmp_path / "corrections.csv"
    path.write_text(f"row,label\n1,a\\x1b[2J\n2,{names[1]}\n3,'=c\n", encoding="utf-8")
    assert corrected(data, read_corrections(path)).candidates[1:4].tolist() == np.eye(3).tolist()
    assert [printable(name) for name in names] == ["a\\x1b[2J", *names[1:]]


def test_corrections_outweigh_the_answers_of_people():
    answers = Answers([0, 0, 0, 1], [0, 1, 2, 0], [1, 1, 1, 2], num_examples=2, num_classes=3)
    data = vt.PartialLabelDataset([[0.0], [1.0]], answers.sets(), answers=answers)
    posterior, _ = corrected(data, {0: "2"}).answers.dawid_skene()
    assert posterior[0].argmax() == 2 and posterior[0, 2] > 0.99


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,name\n1,a\n", "must have a column 'label'"),
        ("row,label\nx,0\n", "whole numbers from 0 on"),
        ("row,label\n1,0\n1,1\n", "name a row once"),
        ("row,label\n1,\n", "must be filled"),
        ("row,label\n1,zebra\n", "must be classes of the data"),
    ],
)
def test_corrections_that_mean_nothing_are_refused(tmp_path, text, message):
    path = tmp_path / "corrections.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        corrected(blobs(5), read_corrections(path), path)


# -- the page -----------------------------------------------------------------------------------------


def test_ten_thousand_examples_stay_under_five_megabytes(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 20, 10_000)
    features = np.eye(20)[labels] + rng.normal(size=(10_000, 20))
    data = vt.PartialLabelDataset(features, vt.candidates.uniform(labels, 20, seed=0))

    class Known(vt.methods.PLKNN):
        """Recovers at random, so that the page's size is what is measured."""

        def decision_function(self, X):
            return rng.normal(size=(len(X), 20))

        predict_proba = None

    model = Known()
    del Known.predict_proba
    model.label_distributions_ = rng.dirichlet(np.full(20, 0.3), 10_000) * data.candidates + 1e-9
    written = vt.report(model, data, tmp_path / "report.html")
    assert 1e5 < written.stat().st_size < 5e6


def test_the_page_loads_nothing_and_runs_its_own_script_alone(tmp_path):
    data = named(blobs(60))
    text = vt.report(
        vt.methods.PLKNN().fit(data), data, tmp_path / "r.html", title=NAMES[0]
    ).read_text()
    assert "http:" not in text.replace("http://www.w3.org/2000/svg", "") and "https:" not in text
    assert text.count("<script") == 2 and text.count("</script>") == 2
    assert "default-src 'none'" in text
    content = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert content["classes"] == NAMES and content["title"] == NAMES[0]
    script = (pathlib.Path(page.__file__).parent / "page.js").read_text()
    assert "innerHTML" not in script and "insertAdjacentHTML" not in script


def test_what_cannot_be_reported_is_refused(tmp_path):
    data = blobs(30)
    model = vt.methods.PLKNN().fit(data)
    with pytest.raises(ValueError, match="must end in .html"):
        vt.report(model, data, tmp_path / "report.pdf")
    with pytest.raises(ValueError, match="`dataset` must be a `PartialLabelDataset`"):
        vt.report(model, data.features, tmp_path / "report.html")
    with pytest.raises(ValueError, match="`details` must have a text for each of 30"):
        vt.report(model, data, tmp_path / "report.html", details=["a"])
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Headless Chromium, where the system has it."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile, downloads = (str(tmp_path_factory.mktemp(name)) for name in ("profile", "downloads"))
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run"):
        options.add_argument(f"--{argument}")
    for argument in ("background-networking", "component-update", "sync"):
        options.add_argument(f"--disable-{argument}")
    options.add_argument(f"--user-data-dir={profile}")
    options.add_argument("--window-size=1280,1600")
    options.add_experimental_option("prefs", {"download.default_directory": downloads})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chromium = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    chromium.downloads = pathlib.Path(downloads)
    yield chromium
    chromium.quit()


# The lowest contrast of any text of the page with what lies behind it, in WCAG's measure.
FAINTEST = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function luminance(color) {
  canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
}
function behind(element) {
  const color = getComputedStyle(element).backgroundColor;
  return color !== "rgba(0, 0, 0, 0)" || !element.parentElement ? color : behind(element.parentElement);
}
const shown = [...document.querySelectorAll("body *")].filter((element) => element.checkVisibility()
  && !element.matches("script, style, :disabled, option, svg *")
  && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
return Math.min(...shown.map((element) => {
  const pair = [luminance(getComputedStyle(element).color), luminance(behind(element))];
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}));
"""


def wait(condition, seconds=10):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(None, seconds, poll_frequency=0.05).until(lambda _: condition())


def test_the_page_works_in_a_browser(browser, tmp_path):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    data, missed = with_misses(200)
    images = np.kron(np.eye(3)[data.labels].reshape(-1, 3, 1), np.ones((3, 9)))  # [examples, 9, 9]
    images = (200 * images + 20 * data.features[:, :1, None] ** 2).clip(0, 255).astype(np.uint8)
    answers = Answers(
        np.repeat(np.arange(200), 2),
        np.tile([0, 1], 200),
        np.stack([data.labels, data.candidates.argmax(axis=1)], axis=1).ravel(),
        num_examples=200,
        num_classes=3,
        annotators=("<b>ann</b>", "bob"),
    )
    shown = vt.PartialLabelDataset(
        images, data.candidates, data.labels, class_names=NAMES, answers=answers
    )
    written = vt.report(
        vt.methods.PLKNN().fit(shown),
        shown,
        tmp_path / "report.html",
        title="Blobs & <b>co</b>",
        details=[f"text number {number} <img src=x onerror='broken=1'>" for number in range(200)],
        history={"loss": [3.0, 2.0, 1.5]},
        held_out=shown.revealed(),
    )
    browser.get(written.as_uri())

    def all_of(selector):
        return browser.find_elements("css selector", selector)

    def one(selector):
        return browser.find_element("css selector", selector)

    assert one("h1").text == "Blobs & <b>co</b>"
    assert len(all_of("#labels tbody tr")) == 40  # of 200: rows are made when they are shown
    assert all(image.get_property("naturalWidth") == 9 for image in all_of("#labels img"))
    for section in ("list", "classes", "annotators", "calibration", "training", "reading"):
        assert one(f"#{section}").is_displayed(), section

    # Filter, search, sort, turn the page.
    Select(one("#reason")).select_by_value("any")
    count = int(one("#count").text.split()[0])
    assert 0 < count < 200 and len(all_of("#labels tbody tr")) == min(count, 40)
    assert all(cell.text for cell in all_of("#labels tbody td:nth-child(6)"))  # each has a reason
    one("#reset").click()
    one("#search").send_keys("number 137")
    wait(lambda: one("#count").text.startswith("1 of 200"))
    assert "text number 137" in one("#labels tbody").text
    one("#reset").click()
    one("th[data-order=row] button").click()
    rows = [int(cell.text) for cell in all_of("#labels tbody td:nth-child(2)")]
    assert rows == list(range(40))
    assert one("th[data-order=row]").get_attribute("aria-sort") == "ascending"
    one("th[data-order=row] button").click()
    assert one("#labels tbody td:nth-child(2)").text == "199"
    one("#next").click()
    assert one("#page").text == "Page 2 of 5"
    one("#reset").click()

    # Details, by keyboard; a correction; its file.
    opener = one("#labels tbody button")
    opener.send_keys(Keys.ENTER)
    assert "Most similar examples" in one("tr.more").text
    assert browser.switch_to.active_element.get_attribute("aria-expanded") == "true"
    row = one("#labels tbody td:nth-child(2)").text
    Select(one("tr.more select")).select_by_visible_text("=2+2")
    assert one("#picked").text == "1 correction ticked"
    tick = all_of("#labels tbody input[type=checkbox]")[1]
    ticked = all_of("#labels tbody td:nth-child(2)")[1].text, all_of("#labels .tick")[1].text
    assert tick.accessible_name == "Row {} is {}".format(*ticked)
    tick.send_keys(Keys.SPACE)
    assert one("#picked").text == "2 corrections ticked"
    one("#download").click()
    file = browser.downloads / "corrections.csv"
    wait(file.exists)
    assert f"{row},'=2+2\n" in file.read_text()
    told = read_corrections(file)
    assert told == {int(row): "=2+2", int(ticked[0]): ticked[1]}
    assert corrected(shown, told).candidates.sum() <= shown.candidates.sum()

    # Both colors; nothing of the user's ran; every control has a name.
    before = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert browser.execute_script(FAINTEST) >= 4.5  # WCAG 2.2, level AA
    one("#theme").click()
    after = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert before != after
    assert browser.execute_script(FAINTEST) >= 4.5
    assert browser.execute_script("return window.broken === undefined")
    assert not [image for image in all_of("img") if image.get_attribute("src")[:5] != "data:"]
    for control in all_of("button, select, input"):
        assert control.accessible_name, control.get_attribute("outerHTML")

    # A phone: nothing sticks out, also with the longest names.
    phone = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    wait(lambda: browser.execute_script("return innerWidth") == 360)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 360
    assert all(box.rect["width"] > 0 for box in all_of("#labels tbody input, #labels tbody button"))
    assert browser.get_log("browser") == []


def test_curves_are_seen_while_it_trains(tmp_path):
    data, (path, state) = blobs(30), (tmp_path / "training.html", tmp_path / "state.npz")
    seen = []

    class Look(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(path.read_text())
            if len(seen) == 3:
                raise KeyboardInterrupt

    def train():
        model = compiled(vt.methods.Proden, data, eager=True)
        page = TrainingPage(tmp_path, NAMES[0])
        watching = [page.begin("proden", 4, state), vt.callbacks.Resume(state), Look()]
        model.fit(data, epochs=4, callbacks=watching, verbose=0)
        return page

    with pytest.raises(KeyboardInterrupt):
        train()
    assert all('http-equiv="refresh"' in text and "<script" not in text for text in seen)
    assert "1 of 4 epochs" in seen[0] and "<svg" not in seen[0] and "3 of 4 epochs" in seen[2]
    page = train()  # goes on, and shows the epochs of the first process too
    assert len(seen) == 4 and "4 of 4 epochs" in seen[3]
    curves = re.findall(r'points="([^"]*)"', seen[3])
    assert curves and all(len(points.split()) == 4 for points in curves)
    page.end()
    assert "refresh" not in path.read_text() and 'href="report.html"' in path.read_text()


@pytest.mark.parametrize("live", [True, False])
def test_the_page_of_curves_works_in_a_browser(live, browser, tmp_path):
    trainings = [(NAMES[1], {NAMES[0]: [3.0, 2.0], "loss": [1.0, 0.5]}, 4), ("other", {}, 4)]
    text = curves_page(NAMES[0], NAMES[1], trainings, live=live, link="report.html")
    (tmp_path / "training.html").write_text(text)
    browser.get((tmp_path / "training.html").as_uri())
    shown = {tag: browser.find_element("css selector", tag).text for tag in ("h1", ".lead", "h2")}
    assert shown == {"h1": NAMES[0], ".lead": f"{NAMES[1]} report.html", "h2": NAMES[1]}
    assert len(browser.find_elements("tag name", "polyline")) == 2
    assert browser.execute_script("return window.broken === undefined")
    assert browser.execute_script(FAINTEST) >= 4.5
    assert browser.get_log("browser") == []


def test_a_run_ends_with_its_report_and_trains_with_the_corrections(tmp_path, capsys):
    data = with_misses(80)[0]
    names = np.array(["ant", "bee", "cat"])
    frame = pd.DataFrame(data.features, columns=["x", "y", "z"])
    frame["labels"] = ["|".join(names[row]) for row in data.candidates.astype(bool)]
    frame["note"] = 1.0
    frame.to_csv(tmp_path / "mine.csv", index=False)
    command = ["train", "--csv", str(tmp_path / "mine.csv"), "data.candidates=labels"]
    command += ["training.epochs=2", "network.name=linear", "ablation=false", "--method", "proden"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    assert str(tmp_path / "run" / "report.html") in capsys.readouterr().out
    content = (tmp_path / "run" / "report.html").read_text()
    assert '"columns":["x","y","z","note"]' in content
    (tmp_path / "run" / "report.html").unlink()
    options = ["--output", str(tmp_path / "page.html"), "--frame", str(tmp_path / "labels.parquet")]
    assert main(["report", str(tmp_path / "run"), *options]) == 0
    labels = pd.read_parquet(tmp_path / "labels.parquet")
    assert (tmp_path / "page.html").read_text() == content

    row = int(labels["row"].iloc[0])
    (tmp_path / "right.csv").write_text(f"row,label\n{row},cat\n")
    changed = [*command, f"data.corrections={tmp_path / 'right.csv'}"]
    assert main([*changed, "--out", str(tmp_path / "again")]) == 0
    kept = pd.read_csv(tmp_path / "again" / "label_distributions.csv").set_index("row")
    assert kept.loc[row, "candidates"] == "cat"
    (tmp_path / "right.csv").write_text(f"row,label\n{row},ant\n")
    assert main([*changed, "--out", str(tmp_path / "again")]) == 2
    assert "are not those that the run" in capsys.readouterr().err
