"""What label-enhancing methods share: the warm-up, the graph of the examples, a seed for every step."""

import functools

import keras
import numpy as np
import tensorflow as tf

from valen_tf import dirichlet, losses
from valen_tf.callbacks import GraphRebuild, WarmUp
from valen_tf.checks import check_settings
from valen_tf.model import PartialLabelModel
from valen_tf.replicas import Place


class LabelEnhancement(PartialLabelModel):
    """Warms up with the minimal loss, then recovers label distributions on a nearest-neighbour graph.

    A method defines `enhancement`, the terms after the warm-up, and `rebuild_graph`, which fills the
    tables `graph_row_ends`, `graph_columns` and `graph_values`.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer whose output represents an example in the graph;
            by default what its last layer receives (for a linear classifier: the features).
        num_neighbours: Neighbours of an example in the graph.
        seed: Seed of everything random in training.
        name: Name of the model.
    """

    def __init__(self, classifier, *, embedding, num_neighbours, seed, name):
        super().__init__(classifier, seed=seed, name=name)
        check_settings(positive={"num_neighbours": num_neighbours})
        self.embedding = embedding
        self.num_neighbours = num_neighbours
        self.enhancing = False
        embedder = _embedding_model(classifier, embedding)
        self.embedding_size = int(np.prod(embedder.output_shape[1:]))
        self.embedding_is_fixed = not embedder.trainable_variables
        # Behind functions, so that Keras does not save the shared layers a second time; a pair for each
        # model, as TensorFlow warns of retracing where several models share their code.
        self._embed, self._score = (
            tf.function(functools.partial(network, training=False), reduce_retracing=True)
            for network in (embedder, classifier)
        )
        self.add_table("graph_epoch", (), np.int64)
        self.add_table("graph_row_ends", (None,), np.int64)
        self.add_table("graph_columns", (None,), np.int32)
        self.add_table("graph_values", (None,), np.float32)

    # -- what a method defines ------------------------------------------------------------------

    def enhancement(self, features, logits, candidates, index):
        """The terms of the objective after the warm-up, by name, each [batch]."""
        raise NotImplementedError

    def rebuild_graph(self):
        """Builds the graph from the current embeddings of the training data; `GraphRebuild` calls it."""
        raise NotImplementedError

    # -- phases ---------------------------------------------------------------------------------

    def objective(self, features, logits, candidates, index):
        """The minimal loss (Eq. 1) in the warm-up, the method's own terms after it."""
        if self.enhancing:
            return self.enhancement(features, logits, candidates, index)
        return {"classification": self.minimal_loss(logits, index)}

    def minimal_loss(self, logits, index):
        """The warm-up's loss: cross-entropy against the stored confidences [batch]."""
        return losses.weighted_cross_entropy(logits, self.weights_of(index))

    def training_callbacks(self):
        """The warm-up switch and the graph's rebuilding."""
        return [WarmUp(), GraphRebuild()]

    def set_enhancing(self, enhancing):
        """Chooses between warm-up and label enhancement; the step is traced anew when it changes."""
        if enhancing != self.enhancing:
            self.enhancing = enhancing
            self.make_train_function(force=True)

    def step_seed(self):
        """A seed [2] that is a function of the step alone: the same in a resumed run."""
        step = tf.cast(self.optimizer.iterations, tf.int32)
        return tf.stack([tf.constant(self.seed, tf.int32), step])

    def log_sample(self, concentration, index, draw=0):
        """The logarithm of one draw of each Dirichlet [batch, classes].

        Drawn as for the whole batch in the order of the examples' numbers, of which a replica takes its
        rows: no two examples share their noise, and an example's depends neither on its place in the
        batch nor on the number of replicas.

        Args:
            concentration: [batch, classes].
            index: The examples [batch], without repetition.
            draw: Number of the draw, where a step needs several.
        """
        place = Place(concentration)
        batch = place.pad(concentration, fill=1.0)
        order = tf.argsort(place.gather(index))
        seed = tf.random.experimental.stateless_fold_in(self.step_seed(), draw)
        log_draws = dirichlet.log_sample(tf.gather(batch, order), seed=seed)
        return place.cut(tf.gather(log_draws, tf.math.invert_permutation(order)))

    # -- graph ----------------------------------------------------------------------------------

    def start_tables(self, candidates):
        """Starts anew on other training data, without a graph."""
        if len(candidates) <= self.num_neighbours:
            raise ValueError(
                "`num_neighbours` must be smaller than the number of training examples: use fewer "
                f"neighbours or more data. Received: num_neighbours={self.num_neighbours} with "
                f"{len(candidates)} examples"
            )
        super().start_tables(candidates)
        self.forget_features()

    def forget_features(self):
        """Drops the graph, which the next epoch of label enhancement then builds anew."""
        for name in ("graph_row_ends", "graph_columns", "graph_values"):
            self.tables[name].assign(self.tables[name][:0])

    @property
    def has_graph(self):
        """Whether label enhancement has begun."""
        return bool(tf.size(self.tables["graph_columns"]) > 0)

    @property
    def graph_age(self):
        """Epochs since the graph was built; infinite while there is none."""
        if not self.has_graph:
            return np.inf
        if self.embedding_is_fixed:
            return 0  # these embeddings cannot have moved
        return self.epochs_trained - int(self.tables["graph_epoch"].numpy())

    def training_features(self):
        """The training data's batches `(features, index)`, in the order of the current epoch."""
        self.set_batch_order()  # a row's last bit depends on its neighbours in the batch
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

    def set_graph(self, matrix):
        """Stores a graph, a `scipy.sparse.csr_array` [examples, examples]."""
        self.tables["graph_row_ends"].assign(matrix.indptr.astype(np.int64))
        self.tables["graph_columns"].assign(matrix.indices.astype(np.int32))
        self.tables["graph_values"].assign(matrix.data)
        self.tables["graph_epoch"].assign(self.epochs_trained)

    def get_config(self):
        """Constructor arguments."""
        config = {"embedding": self.embedding, "num_neighbours": self.num_neighbours}
        return {**super().get_config(), **config}


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
