"""People's answers: what methods make of them, against majority and Dawid-Skene without a classifier.

    python benchmarks/crowd.py music digits yeast circa ambient cifar10n --folder FOLDER --seeds 5

`FOLDER` holds the public files in the folders `crowd/music` (Music Genre: Rodrigues, Pereira and
Ribeiro, 2013), `crowd/circa` (Circa: Louis, Roth and Radlinski, 2020), `crowd/ambient` (AmbiEnt: Liu and
others, 2023), `uci/yeast.data` and `human_labels/cifar10n.npz`; CIFAR-10's images come from TensorFlow
Datasets. What is not there is skipped by name. Digits and Yeast have twelve made-up annotators, of an
accuracy between 20 and 90 %, of whom five answer each example.

Music Genre has its official test part; of other data a fifth is held out. The network has 128 hidden units
and dropout; Adam, 1e-3, 60 epochs, batches of 32 (Circa: 20 epochs of 256); features are standardized,
texts are TF-IDF and 100 singular directions. No true label chooses anything. Printed are the accuracy on
the test part and the share of the training labels that were recovered, mean and deviation over the seeds.
"""

import argparse
import dataclasses
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pandas as pd

import valen_tf as vt
from valen_tf.data.answers import Answers


@dataclasses.dataclass
class Crowd:
    """Training data with answers, the test part, and how to train on them."""

    train: vt.PartialLabelDataset
    test: vt.PartialLabelDataset
    epochs: int = 60
    batch_size: int = 32


# -- data ---------------------------------------------------------------------------------------


def music(folder):
    """Songs and what people on Amazon Mechanical Turk took them for."""
    gold, test, said = (
        pd.read_csv(folder / "crowd" / "music" / f"music_genre_{name}.csv")
        for name in ("gold", "test", "mturk")
    )
    columns = [column for column in gold if column.startswith("feature")]
    songs = vt.PartialLabelDataset.from_answers(
        gold.set_index("id")[columns],
        said,
        item="id",
        annotator="annotator",
        label="class",
        labels=gold["class"],
    )
    test = vt.PartialLabelDataset.from_label_lists(
        test[columns].to_numpy(), [[name] for name in test["class"]], class_names=songs.class_names
    )
    return Crowd(*songs.standardized(test))


def simulated(data):
    """A named set with twelve made-up annotators, five answers an example."""
    data = dataclasses.replace(data, features=data.features.reshape(len(data), -1))
    accuracies = np.random.default_rng(0).uniform(0.2, 0.9, 12)
    said = vt.data.answers.simulated(data.labels, data.num_classes, accuracies, votes=5, seed=0)
    data = vt.PartialLabelDataset.from_answers(data.features, said, labels=data.labels)
    train, test = data.split(0.2, seed=0)
    return Crowd(*train.standardized(test))


def digits(folder):
    """scikit-learn's digits."""
    return simulated(vt.datasets.load("digits"))


def yeast(folder):
    """Yeast, of the UCI repository."""
    return simulated(vt.datasets.load("yeast", folder / "uci"))


def texts(documents, answers, classes, labels):
    """Texts as features, a fifth held out."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    place = vt.PartialLabelDataset.from_answers(np.zeros((len(labels), 1)), answers, labels=labels)
    train, test = place.split(0.2, seed=0)
    frequencies = TfidfVectorizer(
        sublinear_tf=True, min_df=2, ngram_range=(1, 2), max_features=20_000
    )
    directions = TruncatedSVD(100, random_state=0)
    documents = np.array(documents, object)
    known = directions.fit_transform(frequencies.fit_transform(documents[train.rows]))
    new = directions.transform(frequencies.transform(documents[test.rows]))
    train = dataclasses.replace(train, features=known, class_names=classes)
    test = dataclasses.replace(test, features=new, class_names=classes)
    return train.standardized(test)


def circa(folder):
    """Answers to questions, and how five judges understood them; the truth is the gold standard."""
    frame = pd.concat(
        [
            pd.read_csv(folder / "crowd" / "circa" / f"circa_data_{part}.csv", sep="\t")
            for part in ("tune", "dev", "test")
        ],
        ignore_index=True,
    )
    frame = frame[frame["goldstandard1"].notna()].reset_index(drop=True)
    said = frame["judgements"].str.split("#")
    classes = sorted(set(said.explode()) | set(frame["goldstandard1"]))
    number = {name: place for place, name in enumerate(classes)}
    rows = np.repeat(np.arange(len(frame)), said.str.len())
    people = np.concatenate([np.arange(size) for size in said.str.len()])
    answers = Answers(
        rows, people, [number[name] for name in said.explode()], len(frame), len(classes)
    )
    labels = frame["goldstandard1"].map(number).to_numpy()
    documents = frame["question-X"] + " ANSWER " + frame["answer-Y"]
    return Crowd(*texts(documents, answers, classes, labels), epochs=20, batch_size=256)


def ambient(folder):
    """Sentence pairs with two linguists' own sets; the truth is the one label that both have in common."""
    path = folder / "crowd" / "ambient" / "linguist_annotations.jsonl"
    tasks = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    long = pd.DataFrame(
        [
            (item, who, label)
            for item, task in enumerate(tasks)
            for who, label in zip(task["worker_ids"], task["annotations"], strict=True)
        ],
        columns=["item", "annotator", "label"],
    )
    answers, classes, _ = vt.data.answers.from_long(
        long, item="item", annotator="annotator", label="label", items=range(len(tasks))
    )
    common = [
        set.intersection(*(set(said.split("|")) for said in task["annotations"])) for task in tasks
    ]
    one = np.array([len(labels) == 1 for labels in common])
    labels = np.array([classes.index(min(labels)) if labels else 0 for labels in common])
    documents = [f"{task['premise']} THEREFORE {task['hypothesis']}" for task in tasks]
    kept = np.flatnonzero(one)
    return Crowd(
        *texts([documents[row] for row in kept], answers.take(kept), classes, labels[kept]),
        epochs=20,
    )


def cifar10n(folder):
    """The images of CIFAR-10 with three answers each, of people without names."""
    train, test = vt.datasets.load("cifar10")
    train = vt.datasets.human.load_cifar10n(
        folder / "human_labels" / "cifar10n.npz", train, answers=True
    )
    train, test = (
        dataclasses.replace(part, features=part.features.reshape(len(part), -1) / np.float32(255))
        for part in (train, test)
    )
    return Crowd(train, test, epochs=10, batch_size=256)


DATA = {each.__name__: each for each in (music, digits, yeast, circa, ambient, cifar10n)}

# -- methods ------------------------------------------------------------------------------------


def network(data, seed):
    """The network of the comparison."""
    keras.utils.set_random_seed(seed)
    hidden = [keras.layers.Dense(128, "relu"), keras.layers.Dropout(0.5)]
    return keras.Sequential(
        [keras.Input(data.feature_shape), *hidden, keras.layers.Dense(data.num_classes)]
    )


def _steps(crowd):
    # An epoch in one call: on a small network Python takes longer than the arithmetic.
    return -(-len(crowd.train) // crowd.batch_size)


def supervised(distributions_of):
    """Trains on distributions [examples, classes] as if they were the labels'."""

    def run(crowd, seed):
        distributions = distributions_of(crowd.train)
        classifier = network(crowd.train, seed)
        classifier.compile(
            keras.optimizers.Adam(1e-3),
            keras.losses.CategoricalCrossentropy(from_logits=True),
            steps_per_execution=_steps(crowd),
        )
        classifier.fit(
            crowd.train.features,
            distributions,
            epochs=crowd.epochs,
            batch_size=crowd.batch_size,
            verbose=0,
        )
        return classifier, distributions

    return run


def weighed(method, sets=None):
    """Trains a method on the answers, or on sets made of them."""

    def run(crowd, seed):
        data = crowd.train
        if sets is not None:
            data = dataclasses.replace(data, candidates=sets(data.answers), answers=None)
        model = method(network(data, seed), seed=seed)
        model.compile(keras.optimizers.Adam(1e-3), steps_per_execution=_steps(crowd))
        model.fit(data, epochs=crowd.epochs, batch_size=crowd.batch_size, verbose=0)
        return model.classifier, model.label_distributions()

    return run


def one_hot(labels, data):
    """Labels as distributions."""
    return np.eye(data.num_classes)[labels]


ROWS = {
    "the truth": supervised(lambda data: one_hot(data.labels, data)),
    "majority": supervised(lambda data: one_hot(data.answers.majority(), data)),
    "shares of the votes": supervised(lambda data: data.answers.shares()),
    "Dawid-Skene's posterior": supervised(lambda data: data.answers.dawid_skene()[0]),
    "VALEN, union": weighed(vt.Valen, sets=Answers.sets),
    "VALEN, min_votes=2": weighed(vt.Valen, sets=lambda answers: answers.sets(min_votes=2)),
    "CC, answers": weighed(vt.methods.CC),
    "PRODEN, answers": weighed(vt.methods.Proden),
    "VALEN, answers": weighed(vt.Valen),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="*", default=list(DATA), metavar="DATA", help=", ".join(DATA))
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--rows", nargs="+", default=list(ROWS), help="some rows of the table alone"
    )
    parser.add_argument("--json", help="file to append a line for each row to")
    options = parser.parse_args()
    for name in options.data:
        try:
            crowd = DATA[name](options.folder)
        except (OSError, ValueError, ImportError) as error:
            print(f"{name}: skipped, {str(error).splitlines()[0]}", flush=True)
            continue
        answers, truth = crowd.train.answers, crowd.test.candidates.argmax(axis=1)
        print(f"\n{name}: {crowd.train}\n{answers}\n{answers.habits}, chosen by held-out answers")
        print(f"{'':26}{'accuracy':>16}{'recovered':>17}", flush=True)
        for row in options.rows:
            accuracies, recovered = [], []
            for seed in range(options.seeds):
                classifier, distributions = ROWS[row](crowd, seed)
                predicted = classifier.predict(crowd.test.features, verbose=0).argmax(axis=1)
                accuracies.append(100 * float((predicted == truth).mean()))
                found = distributions.argmax(axis=1) == crowd.train.labels
                recovered.append(100 * float(found.mean()))
                keras.backend.clear_session()
            print(f"{row:26}{_shown(accuracies)}{_shown(recovered)}", flush=True)
            if options.json:
                line = {"data": name, "row": row, "accuracies": accuracies, "recovered": recovered}
                line["habits"] = dataclasses.asdict(answers.habits)
                with open(options.json, "a") as file:
                    file.write(json.dumps(line) + "\n")


def _shown(values):
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):10.2f} ± {deviation:4.2f}"


if __name__ == "__main__":
    main()
