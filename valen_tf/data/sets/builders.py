"""The real-world sets as TensorFlow Datasets builders, which read the public `.mat` files.

Importing this module registers them; TFDS then splits, shards, shuffles and caches them as any other:

    import tensorflow_datasets as tfds
    import valen_tf.data.sets.builders

    manual = tfds.download.DownloadConfig(manual_dir="folder/with/lost.mat")
    train, test = tfds.load(
        "lost",
        split=["train[:80%]", "train[80%:]"],
        download_and_prepare_kwargs={"download_config": manual},
    )

or, on TFDS's own command line (which wants `apache-beam` and `mlcroissant` installed),

    tfds build lost --imports=valen_tf.datasets.builders --manual_dir=folder/with/lost.mat

`valen_tf.datasets.load("lost", folder)` reads the same file without TFDS.
"""

import numpy as np
import tensorflow_datasets as tfds

from valen_tf.data.files import sha256
from valen_tf.data.sets.realworld import load_real_world
from valen_tf.data.sets.registry import PALM, SPECS


class RealWorldBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Features, candidate set and true label of each example; one split, `"train"`."""

    VERSION = tfds.core.Version("1.0.0")
    MANUAL_DOWNLOAD_INSTRUCTIONS = f"Put the public .mat file, from {PALM}, into `manual_dir`."

    def _info(self):
        spec = SPECS[self.name]
        return tfds.core.DatasetInfo(
            builder=self,
            description=f"{spec.title}, a real-world partial-label set. Licence: {spec.licence}.",
            features=tfds.features.FeaturesDict(
                {
                    "features": tfds.features.Tensor(shape=spec.shape, dtype=np.float32),
                    "candidates": tfds.features.Tensor(shape=(spec.classes,), dtype=np.uint8),
                    "label": tfds.features.ClassLabel(num_classes=spec.classes),
                }
            ),
            citation=spec.citation,
            metadata=tfds.core.MetadataDict(),
        )

    def _split_generators(self, dl_manager):
        spec = SPECS[self.name]
        path = dl_manager.manual_dir / spec.file
        dataset = load_real_world(spec, dl_manager.manual_dir)
        # TFDS keeps checksums of what it downloads; this is the one of what the user put there.
        self.info.metadata.update(file=spec.file, sha256=sha256(path))
        return {"train": self._generate_examples(dataset)}

    def _generate_examples(self, dataset):
        rows = zip(dataset.features, dataset.candidates, dataset.labels, strict=True)
        for key, (features, candidates, label) in enumerate(rows):
            yield key, {"features": features, "candidates": candidates, "label": int(label)}


class Lost(RealWorldBuilder):
    """Faces of the series Lost, named by its screenplay."""

    name = "lost"


class MSRCv2(RealWorldBuilder):
    """Image segments, named by what their image shows."""

    name = "msrcv2"


class BirdSong(RealWorldBuilder):
    """Syllables of birds, named by the species heard in the recording."""

    name = "birdsong"


class SoccerPlayer(RealWorldBuilder):
    """Faces of soccer players, named by the text around the photo."""

    name = "soccer_player"


class YahooNews(RealWorldBuilder):
    """Faces in the news, named by the caption."""

    name = "yahoo_news"
