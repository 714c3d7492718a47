"""What label-enhancing methods share: the warm-up, and the graph of the training examples."""

import functools

import keras
import numpy as np
import tensorflow as tf

from valen_tf import checks, losses
from valen_tf.callbacks import GraphRebuild, WarmUp
from valen_tf.model.base import PartialLabelModel
from valen_tf.model.memory import GraphMemory


class LabelEnhancement(PartialLabelModel):
    """Warms up with the minimal loss, then recovers label distributions on a nearest-neighbor graph.

    A method defines `objective`, which gives `warm_up_terms` while the model is `warming_up`, and
    `rebuild_graph`, which stores a graph in `graph`.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer whose output represents an example in the graph;
            by default what its last layer receives (for a linear classifier: the features).
        num_neighbors: Neighbors of an example in the graph.
        seed: Seed of everything random in training.
        name: Name of the model.
    """

    rules = checks.rules(PartialLabelModel.rules, num_neighbors=checks.COUNT)

    @checks.checked()
    def __init__(self, classifier, *, embedding, num_neighbors, seed, name):
        super().__init__(classifier, seed=seed, name=name)
        self.embedding = embedding
        self.num_neighbors = num_neighbors
        self.warming_up = True
        embedder = _embedding_model(classifier, embedding)
        self.embedding_size = int(np.prod(embedder.output_shape[1:]))
        self.embedding_is_fixed = not embedder.trainable_variables
        # Behind functions, so that Keras does not save the shared layers a second time; a pair for each
        # model, as TensorFlow warns of retracing where several models share their code.
        self._embed, self._score = (
            tf.function(functools.partial(network, training=False), reduce_retracing=True)
            for network in (embedder, classifier)
        )
        self.graph = GraphMemory(self.memory)

    # -- what a method defines ------------------------------------------------------------------

    def rebuild_graph(self):
        """Builds the graph from the current embeddings of the training data; `GraphRebuild` calls it."""
        raise NotImplementedError

    # -- phases ---------------------------------------------------------------------------------

    def warm_up_terms(self, logits, index):
        """The minimal loss (Eq. 1): cross-entropy against the stored confidences, [batch]."""
        stored = self.read("label_weights", index)
        return {"classification": losses.weighted_cross_entropy(logits, stored)}

    def training_callbacks(self):
        """The warm-up switch and the graph's rebuilding."""
        return [WarmUp(), GraphRebuild()]

    @property
    def enhancing(self):
        """Whether the warm-up is over."""
        return not self.warming_up

    def set_enhancing(self, enhancing):
        """Chooses between warm-up and label enhancement; the step is traced anew when it changes."""
        if enhancing == self.warming_up:
            self.warming_up = not enhancing
            self.make_train_function(force=True)

    # -- the graph ------------------------------------------------------------------------------

    def start_memory(self, candidates):
        """Starts anew on other training data, without a graph."""
        if len(candidates) <= self.num_neighbors:
            raise ValueError(
                "`num_neighbors` must be smaller than the number of training examples: use fewer "
                f"neighbors or more data. Received: num_neighbors={self.num_neighbors} with "
                f"{len(candidates)} examples"
            )
        super().start_memory(candidates)
        self.forget_features()

    def forget_features(self):
        """Drops the graph, which the next epoch of label enhancement then builds anew."""
        self.graph.forget()

    @property
    def has_graph(self):
        """Whether label enhancement has begun."""
        return bool(self.graph)

    @property
    def graph_age(self):
        """Epochs since the graph was built; infinite while there is none."""
        if not self.graph:
            return np.inf
        # Embeddings that cannot move keep their graph.
        return 0 if self.embedding_is_fixed else self.epochs_trained - self.graph.epoch

    def training_features(self):
        """The training data's batches `(features, index)`, in the order of the current epoch."""
        self.set_batch_order()  # a row's last bit depends on its neighbors in the batch
        for features, targets in self._training_data:
            yield features, targets["index"].numpy()

    def training_embeddings(self):
        """Current embeddings of the training data [examples, features]."""
        return self._training_outputs(self._embed, self.embedding_size)

    def training_logits(self):
        """Current logits of the training data [examples, classes]."""
        return self._training_outputs(self._score, self.num_classes)

    def _training_outputs(self, function, size):
        outputs = np.empty((self.num_examples, size), np.float32)
        for features, index in self.training_features():
            outputs[index] = tf.cast(function(features), tf.float32).numpy().reshape(len(index), -1)
        return outputs


def _embedding_model(classifier, layer_name):
    """The part of the classifier that ends in its embedding."""
    if layer_name is None:
        output = classifier.layers[-1].input
    else:
        names = [layer.name for layer in classifier.layers]
        if layer_name not in names:
            raise ValueError(
                "`embedding` must name a layer of the classifier. "
                f"Received: embedding={layer_name!r}; the layers are {', '.join(names)}"
            )
        output = classifier.get_layer(layer_name).output
    return keras.Model(classifier.inputs, output)
