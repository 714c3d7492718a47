"""People's answers: what methods make of them, against majority and Dawid-Skene without a classifier.

    python benchmarks/crowd.py music digits yeast circa circa_two ambient cifar10n --folder FOLDER --seeds 5
    python benchmarks/crowd.py fashion newsgroups --folder FOLDER --seeds 2

`FOLDER` holds the public files in the folders `crowd/music` (Music Genre: Rodrigues, Pereira and
Ribeiro, 2013), `crowd/circa` (Circa: Louis, Roth and Radlinski, 2020), `crowd/ambient` (AmbiEnt: Liu and
others, 2023), `uci/yeast.data`, `20newsgroups` and `human_labels/cifar10n.npz`; the images of CIFAR-10 and
Fashion-MNIST come from TensorFlow Datasets. What is not there is skipped by name. Digits and Yeast have
twelve made-up annotators, of an accuracy between 20 and 90 %, of whom five answer each example. Parts of
Fashion-MNIST and 20 Newsgroups have made-up crowds that nothing was chosen on: forty people err towards
classes that look alike, at random, or say nearly the same of everything; three or two answer each example.

The truth of Circa is what most of its five judges said: `circa_two` keeps the answers of two judges alone,
so that the truth is more than the answers. The truth of AmbiEnt is the set of labels that the authors
agreed on in the end: any label of the set is right. Of CIFAR-10N the first 10,000 images are trained on.

Music Genre and CIFAR-10N have their official test parts; of other data a fifth is held out. The network has
128 hidden units and dropout; Adam, 1e-3, 60 epochs, batches of 32 (texts and photographs: 20 epochs;
Circa: batches of 256). Features are standardized. Texts are TF-IDF and 100 singular directions;
photographs are 256 principal components of their likeness to 192 typical patches, in each quadrant (Coates,
Lee and Ng, 2011). No true label chooses anything. Printed are the accuracy on the test part and the share
of the training labels that were recovered, mean and deviation over the seeds.
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
    """Training data with answers, the test part, and how to train on them.

    The candidates of the test part are the labels that are right, of which there may be several; so are
    the rows of `truth` [examples, classes], by default the training part's true labels.
    """

    train: vt.PartialLabelDataset
    test: vt.PartialLabelDataset
    epochs: int = 60
    batch_size: int = 32
    truth: np.ndarray | None = None

    def __post_init__(self):
        if self.truth is None:
            self.truth = np.eye(self.train.num_classes)[self.train.labels]


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


def habitual(train, votes, people=40):
    """A data set with answers of a made-up crowd that has habits."""
    rng = np.random.default_rng(0)
    labels, classes = train.labels, train.num_classes
    centers = np.stack([train.features[labels == label].mean(axis=0) for label in range(classes)])
    apart = np.linalg.norm(centers[:, None] - centers, axis=-1)
    np.fill_diagonal(apart, np.inf)
    nearness = np.exp(-4 * apart / np.median(apart[np.isfinite(apart)]))
    nearness /= nearness.sum(axis=1, keepdims=True)
    random = (1 - np.eye(classes)) / (classes - 1)
    says = []  # of each person: probabilities [true class, said class]
    for who in range(people):
        accuracy = rng.uniform(0.3, 0.95, classes)[:, None]
        errors = nearness if who % 2 else random
        habits = accuracy * np.eye(classes) + (1 - accuracy) * errors
        if who % 10 == 0:  # the same of everything
            habits = 0.1 * habits + 0.9 * np.eye(classes)[rng.integers(classes)]
        says.append(habits)
    who = np.stack([rng.permutation(people)[:votes] for _ in labels])
    limits = np.array(says)[who, labels[:, None]].cumsum(axis=-1)  # [examples, votes, classes]
    said = (rng.random(who.shape)[..., None] > limits).sum(axis=-1).clip(max=classes - 1)
    rows = np.repeat(np.arange(len(train)), votes)
    told = Answers(rows, who.ravel(), said.ravel(), len(train), classes, annotators=range(people))
    return vt.PartialLabelDataset.from_answers(
        train.features, told, labels=labels, class_names=train.class_names
    )


def fashion(folder):
    """3,000 images of Fashion-MNIST, with three answers each of a crowd with habits."""
    train, test = (
        dataclasses.replace(part, features=part.features.reshape(len(part), -1) / np.float32(255))
        for part in vt.datasets.load("fashion_mnist")
    )
    train, test = train.take(slice(3_000)).standardized(test)
    return Crowd(habitual(train, votes=3), test)


def newsgroups(folder):
    """4,000 texts of 20 Newsgroups, with two answers each of a crowd with habits."""
    texts = vt.datasets.load("20newsgroups", folder / "20newsgroups")
    some = np.random.default_rng(0).permutation(len(texts))[:5_000]
    some_texts = tuple(texts.texts[row] for row in some)
    texts = dataclasses.replace(texts, texts=some_texts, labels=texts.labels[some], dimension=100)
    train, test = texts.split(0.2, seed=0)
    train, test = train.standardized(test)
    return Crowd(habitual(train, votes=2), test, epochs=30)


def texts(documents, answers, classes, truth, **options):
    """Texts as features, a fifth held out; of every text the labels that are right [texts, classes]."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    place = vt.PartialLabelDataset.from_answers(np.zeros((len(truth), 1)), answers)
    train, test = place.split(0.2, seed=0)
    frequencies = TfidfVectorizer(
        sublinear_tf=True, min_df=2, ngram_range=(1, 2), max_features=20_000
    )
    directions = TruncatedSVD(100, random_state=0)
    documents = np.array(documents, object)
    known = directions.fit_transform(frequencies.fit_transform(documents[train.rows]))
    new = directions.transform(frequencies.transform(documents[test.rows]))
    truth, right = truth[train.rows], truth[test.rows]
    train = dataclasses.replace(train, features=known, class_names=classes)
    test = vt.PartialLabelDataset(new, right.astype(np.uint8), class_names=classes)
    return Crowd(*train.standardized(test), epochs=20, truth=truth, **options)


def circa(folder, judges=5):
    """Answers to questions, and how judges understood them; the truth is what most of five judges said."""
    frame = pd.concat(
        [
            pd.read_csv(folder / "crowd" / "circa" / f"circa_data_{part}.csv", sep="\t")
            for part in ("tune", "dev", "test")
        ],
        ignore_index=True,
    )
    frame = frame[frame["goldstandard1"].notna()].reset_index(drop=True)
    judged = frame["judgements"].str.split("#", expand=True)
    classes = sorted(set(judged.stack().dropna()))
    answers, _, _ = vt.data.answers.from_wide(judged.iloc[:, :judges], class_names=classes)
    truth = np.eye(len(classes))[[classes.index(name) for name in frame["goldstandard1"]]]
    documents = frame["question-X"] + " ANSWER " + frame["answer-Y"]
    return texts(documents, answers, classes, truth, batch_size=256)


def circa_two(folder):
    """The same with the answers of the first two judges alone."""
    return circa(folder, judges=2)


def ambient(folder):
    """Sentence pairs with linguists' own sets; the truth is the set that the authors agreed on."""
    folder = folder / "crowd" / "ambient"
    said, agreed = (
        pd.read_json(folder / f"{name}.jsonl", lines=True)
        for name in ("linguist_annotations", "ambient_full")
    )
    pair = ["premise", "hypothesis"]
    said = said.drop_duplicates(pair).merge(
        agreed[[*pair, "labels"]].drop_duplicates(pair), on=pair
    )
    long = said.explode(["worker_ids", "annotations"])
    names = {"item": "id", "annotator": "worker_ids", "label": "annotations"}
    answers, classes, _ = vt.data.answers.from_long(long, items=said["id"], **names)
    truth = np.array(
        [[name in labels.split(", ") for name in classes] for labels in said["labels"]]
    )
    return texts(said["premise"] + " THEREFORE " + said["hypothesis"], answers, classes, truth)


def cifar10n(folder):
    """The first images of CIFAR-10 with three answers each, of people without names."""
    train, test = vt.datasets.load("cifar10")
    train = vt.datasets.human.load_cifar10n(
        folder / "human_labels" / "cifar10n.npz", train, answers=True
    )
    parts = train.take(slice(10_000)), test
    train, test = (
        dataclasses.replace(part, features=features)
        for part, features in zip(parts, of_patches(*parts), strict=True)
    )
    return Crowd(*train.standardized(test), epochs=20)


def of_patches(*parts, size=6, typical=192, components=256):
    """Features of photographs without any label: how like typical patches each of the quadrants is."""
    import tensorflow as tf
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    images = parts[0].features
    some = rng.integers(len(images), size=50_000)
    where = rng.integers(images.shape[1] - size + 1, size=(2, len(some)))
    patches = np.stack(
        [
            images[row, top : top + size, left : left + size].reshape(-1)
            for row, top, left in zip(some, *where, strict=True)
        ]
    ).astype(np.float32)
    patches = _of_unit_contrast(patches)
    mean = patches.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(patches.T))
    whitening = ((vectors / np.sqrt(values + 0.1)) @ vectors.T).astype(np.float32)
    found = MiniBatchKMeans(typical, batch_size=4096, n_init=1, random_state=0)
    centers = found.fit((patches - mean) @ whitening).cluster_centers_.astype(np.float32)

    def quadrants(images):
        windows = tf.image.extract_patches(
            tf.cast(images, tf.float32), [1, size, size, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"
        ).numpy()
        windows = (_of_unit_contrast(windows) - mean) @ whitening
        squares = (windows**2).sum(axis=-1, keepdims=True) + (centers**2).sum(axis=1)
        distances = np.sqrt(np.maximum(squares - 2 * windows @ centers.T, 0))
        near = np.maximum(distances.mean(axis=-1, keepdims=True) - distances, 0)
        half = near.shape[1] // 2
        sums = [
            near[:, rows, columns].sum(axis=(1, 2))
            for rows in (slice(half), slice(half, None))
            for columns in (slice(half), slice(half, None))
        ]
        return np.concatenate(sums, axis=1)

    features = [
        np.concatenate([quadrants(images) for images in np.array_split(part.features, 100)])
        for part in parts
    ]
    directions = PCA(components, random_state=0).fit(features[0])
    return [directions.transform(each).astype(np.float32) for each in features]


def _of_unit_contrast(patches):
    """Patches [..., numbers] of mean 0 and deviation 1, or less where there is hardly any contrast."""
    patches = patches - patches.mean(axis=-1, keepdims=True)
    return patches / np.sqrt(patches.var(axis=-1, keepdims=True) + 10)


READERS = (music, digits, yeast, circa, circa_two, ambient, cifar10n, fashion, newsgroups)
DATA = {each.__name__: each for each in READERS}

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
        distributions = distributions_of(crowd)
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


ROWS = {
    "the truth": supervised(lambda crowd: crowd.truth / crowd.truth.sum(axis=1, keepdims=True)),
    "majority": supervised(
        lambda crowd: np.eye(crowd.train.num_classes)[crowd.train.answers.majority()]
    ),
    "shares of the votes": supervised(lambda crowd: crowd.train.answers.shares()),
    "Dawid-Skene's posterior": supervised(lambda crowd: crowd.train.answers.dawid_skene()[0]),
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
        answers = crowd.train.answers
        print(f"\n{name}: {crowd.train}\n{answers}\n{answers.habits}, chosen by held-out answers")
        print(f"{'':26}{'accuracy':>16}{'recovered':>17}", flush=True)
        for row in options.rows:
            accuracies, recovered = [], []
            for seed in range(options.seeds):
                classifier, distributions = ROWS[row](crowd, seed)
                predicted = classifier.predict(crowd.test.features, verbose=0).argmax(axis=1)
                accuracies.append(_share_right(predicted, crowd.test.candidates))
                recovered.append(_share_right(distributions.argmax(axis=1), crowd.truth))
                keras.backend.clear_session()
            print(f"{row:26}{_shown(accuracies)}{_shown(recovered)}", flush=True)
            if options.json:
                line = {"data": name, "row": row, "accuracies": accuracies, "recovered": recovered}
                line["habits"] = dataclasses.asdict(answers.habits)
                with open(options.json, "a") as file:
                    file.write(json.dumps(line) + "\n")


def _share_right(labels, right):
    """Percentage of the examples whose label is right [examples, classes]."""
    return 100 * float(right[np.arange(len(labels)), labels].mean())


def _shown(values):
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):10.2f} ± {deviation:4.2f}"


if __name__ == "__main__":
    main()
