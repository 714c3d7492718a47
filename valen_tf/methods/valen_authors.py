"""The recipe of the VALEN authors' public code, which is not the paper's algorithm."""

from __future__ import annotations

import math

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from valen_tf import checks, dirichlet, losses
from valen_tf.graph import convolution, neighbors
from valen_tf.methods import register
from valen_tf.methods.valen import LabelEnhancement
from valen_tf.model import replicas


@register(
    "valen_authors",
    learns_from="the recipe of the authors' public code, which is not the paper's algorithm",
    choose_it="to compare with figures of the authors' code",
    title="VALEN (authors' code)",
    order=30,
    tuning={"settings.compatibility_weight": (1.0, 50.0), "settings.kl_weight": (1e-3, 1.0)},
    ablation="valen_non",
)
class ValenAuthors(LabelEnhancement):
    """VALEN as trained by the authors' public code, to compare with figures of this code.

    After the warm-up a second network of the classifier's form, fed the features alone, gives the
    Dirichlet parameters. One sample of the Dirichlet, masked to the candidates, becomes the classifier's
    target when the example is next seen. Against the paper: no graph convolution and no candidate sets
    in the encoder; the decoder rebuilds the features, not the candidate sets; the KL term and the sample
    use different concentrations; the compatibility is the encoder's cross-entropy against the stored
    confidence; the graph is directed, with self-loops, row-normalized and built once.

    What kept the code's numbers from being repeated is repaired: the concentration is bounded before the
    exponential, not after it; a candidate whose probability underflows once is not lost; features are
    rebuilt in standardized form, by moments of the training part; no examples x examples matrix is made;
    everything random follows from the seed.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer on whose output the graph is built.
        compatibility_weight: The code's gamma: 20 on the real-world sets; on the image sets 10, but 5 under
            instance-dependent candidates of the MNIST family.
        kl_weight: The code's beta: 0.01 on the real-world sets, 0.1 on the image sets.
        feature_weight: Weight of the features' reconstruction: 1 on Lost, MSRCv2 and BirdSong, else 0.01.
        label_weight: Weight of the candidate sets' reconstruction, by the sample itself.
        graph_weight: Weight of the graph's reconstruction.
        correct: Share of the sample in the classifier's target; the rest is the stored confidence. 0.2 on
            Soccer Player, Yahoo! News and CIFAR-10 with instance-dependent candidates.
        num_neighbors: Neighbors of an example in the graph (k).
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Ning Xu, Congyu Qiao, Xin Geng, Min-Ling Zhang. Instance-Dependent Partial Label Learning.
        NeurIPS 2021; code at github.com/palm-ml/valen. Settings: SGD, 1e-2 with momentum 0.9.
    """

    term_names = (
        "classification",
        "compatibility",
        "feature_reconstruction",
        "label_reconstruction",
        "graph_reconstruction",
        "kl",
    )

    rules = checks.rules(
        LabelEnhancement.rules,
        compatibility_weight=checks.NOT_NEGATIVE,
        kl_weight=checks.NOT_NEGATIVE,
        feature_weight=checks.NOT_NEGATIVE,
        label_weight=checks.NOT_NEGATIVE,
        graph_weight=checks.NOT_NEGATIVE,
        correct=checks.SHARE,
    )

    @checks.checked(former={"num_neighbours": "num_neighbors"})
    def __init__(
        self,
        classifier: keras.Model,
        *,
        embedding: str | None = None,
        compatibility_weight: float = 20.0,
        kl_weight: float = 0.01,
        feature_weight: float = 1.0,
        label_weight: float = 0.01,
        graph_weight: float = 1.0,
        correct: float = 1.0,
        num_neighbors: int = 3,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            classifier, embedding=embedding, num_neighbors=num_neighbors, seed=seed, name=name
        )
        self.compatibility_weight = compatibility_weight
        self.kl_weight = kl_weight
        self.feature_weight = feature_weight
        self.label_weight = label_weight
        self.graph_weight = graph_weight
        self.correct = correct

        classifier = self.classifier
        if len(classifier.inputs) != 1 or not classifier.inputs[0].dtype.startswith("float"):
            raise ValueError(
                "`classifier` must have one input of numbers, which this method rebuilds. Received: "
                f"{classifier.name!r} with inputs of {[each.dtype for each in classifier.inputs]}"
            )
        self.encoder = keras.models.clone_model(classifier)
        self.encoder.name = "encoder"
        self.encoder.set_weights(classifier.get_weights())
        self.feature_size = int(np.prod(classifier.input_shape[1:]))
        self.decoder = _decoder(self.num_classes, self.feature_size, seed)
        self.memory.add("feature_mean", (None,), np.float32)
        self.memory.add("feature_std", (None,), np.float32)

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The code's six terms, each [batch]; the minimal loss in the warm-up."""
        if self.warming_up:
            return self.warm_up_terms(logits, index)
        raw = tf.cast(replicas.forward(self.encoder, features), tf.float32)  # [batch, classes]
        distribution = self._sample(raw, candidates, index)
        stored = self.read("confidence", index)
        rebuilt = self.decoder(distribution)  # [batch, features]
        target = self.read("label_weights", index)
        sample = losses.restrict(distribution, candidates)
        # The target when the example is next seen.
        self.write("label_weights", index, self.correct * sample + (1.0 - self.correct) * stored)
        return {
            "classification": losses.weighted_cross_entropy(logits, target),
            "compatibility": self.compatibility_weight * losses.weighted_cross_entropy(raw, stored),
            "feature_reconstruction": self.feature_weight
            * tf.reduce_mean((rebuilt - self._standardized(features)) ** 2, axis=-1),
            "label_reconstruction": self.label_weight
            / self.num_classes
            * losses.label_reconstruction(distribution, candidates),
            "graph_reconstruction": self.graph_weight * self._graph_error(distribution, index),
            "kl": self.kl_weight * dirichlet.kl_to_symmetric(_concentration(raw), 1.0),
        }

    def _sample(self, raw, candidates, index):
        """One draw [batch, classes] of a Dirichlet whose parameters are the masked soft-max and 0.01."""
        concentration = losses.confidence(raw, candidates) + 0.01
        step = (self.seed, self.optimizer.iterations)
        return tf.exp(dirichlet.log_sample_of(index, concentration, seed=step))

    def _standardized(self, features):
        flat = tf.reshape(tf.cast(features, tf.float32), [-1, self.feature_size])
        return (flat - self.memory["feature_mean"]) / self.memory["feature_std"]

    def _graph_error(self, distribution, index):
        """Squared error of the batch's block of the graph, rebuilt by a row-wise soft-max [batch]."""
        _, rows = convolution.block(*self.graph_tables, index)
        entries = tf.minimum(self.num_neighbors, tf.shape(self.memory["candidates"])[0] - 1) + 1
        wanted = convolution.batch_adjacency(rows) / tf.cast(entries, tf.float32)  # [batch, batch]
        product = tf.matmul(distribution, distribution, transpose_b=True)
        return tf.reduce_mean((tf.nn.softmax(tf.sigmoid(product)) - wanted) ** 2, axis=-1)

    # -- graph, what is trained, saving ---------------------------------------------------------

    @property
    def graph_age(self) -> float:
        """Infinite while there is no graph; the code's is built once."""
        return 0 if self.has_graph else np.inf

    def rebuild_graph(self) -> None:
        """Builds the directed graph, and takes the moments of the features."""
        embeddings = self.training_embeddings()
        found, _ = neighbors.search(embeddings, self.neighbors_at_hand, seed=self.seed)
        num_examples = len(found)
        adjacency = neighbors.adjacency(found, directed=True)
        adjacency.data /= self.neighbors_at_hand + 1  # rows of sum 1: the neighbors and the example
        self.store_graph(adjacency)
        total = np.zeros((2, self.feature_size))
        for features, _ in self.training_features():
            flat = features.numpy().reshape(-1, self.feature_size).astype(np.float64)
            total += [flat.sum(axis=0), (flat**2).sum(axis=0)]
        mean, square = total / num_examples
        self.memory["feature_mean"].assign(mean)
        std = np.sqrt(np.maximum(square - mean**2, 0))
        self.memory["feature_std"].assign(np.where(std > 1e-6, std, 1.0))

    def trained_variables(self) -> list:
        """Those of all three networks: the code has one optimizer."""
        networks = (self.classifier, self.encoder, self.decoder)
        return [variable for network in networks for variable in network.trainable_variables]


def _concentration(raw):
    """The KL term's concentrations [batch, classes]: exp(raw / 4), from 0.01 to 30."""
    return tf.exp(tf.clip_by_value(raw / 4, math.log(0.01), math.log(30)))


def _decoder(num_classes, feature_size, seed):
    """p(x | d): one hidden layer as wide as the features."""
    return keras.Sequential(
        [
            keras.Input((num_classes,)),
            layers.Dense(
                feature_size,
                activation="relu",
                kernel_initializer=keras.initializers.GlorotUniform(seed + 1),
            ),
            layers.Dense(
                feature_size, kernel_initializer=keras.initializers.GlorotUniform(seed + 2)
            ),
        ],
        name="decoder",
    )
