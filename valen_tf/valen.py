"""VALEN: variational label enhancement for partial-label learning (Xu et al., NeurIPS 2021)."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from valen_tf import dirichlet, graph, losses
from valen_tf.callbacks import GraphRebuild, WarmUp
from valen_tf.encoder import GraphEncoder
from valen_tf.model import PartialLabelModel


@keras.saving.register_keras_serializable(package="valen_tf")
class Valen(PartialLabelModel):
    """VALEN: recovers a label distribution for every example and trains the classifier on it.

    After a warm-up with the minimal loss, every step infers a Dirichlet posterior over each example's
    label distribution with a graph convolutional network, and trains the classifier on the posterior
    mean restricted to the candidates. Everything is updated together; prediction needs the classifier
    alone.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer whose output represents an example in the graph;
            by default what its last layer receives (for a linear classifier: the features).
        compatibility_weight: The paper's lambda.
        prior_concentration: The paper's epsilon.
        label_weight: Weight of the candidate sets' reconstruction.
        graph_weight: Weight of the graph's reconstruction.
        kl_weight: Weight of the KL divergence from the prior.
        num_neighbours: Neighbours of an example in the graph (k).
        hidden_units: Width of the encoder's and the decoder's hidden layers.
        seed: Seed of everything random in training.
        name: Name of the model.

    Example:
        >>> import numpy as np, valen_tf as vt
        >>> features = np.random.default_rng(0).normal(size=(60, 2)).astype("float32")
        >>> candidates = np.stack([features[:, 0] > -0.3, features[:, 0] < 0.3], axis=1)
        >>> model = vt.Valen(vt.networks.linear((2,), 2))
        >>> model.compile(keras.optimizers.SGD(0.1), metrics=["accuracy"])
        >>> history = model.fit(features, candidates, epochs=12, verbose=0)
        >>> model.predict(features, verbose=0).shape, model.label_distributions().shape
        ((60, 2), (60, 2))

    Reference:
        Ning Xu, Congyu Qiao, Xin Geng, Min-Ling Zhang. Instance-Dependent Partial Label Learning.
        NeurIPS 2021.
    """

    term_names = (
        "classification",
        "compatibility",
        "label_reconstruction",
        "graph_reconstruction",
        "kl",
    )

    def __init__(
        self,
        classifier,
        *,
        embedding=None,
        compatibility_weight=1.0,
        prior_concentration=0.01,
        label_weight=0.01,
        graph_weight=30.0,
        kl_weight=0.1,
        num_neighbours=10,
        hidden_units=64,
        seed=0,
        name=None,
    ):
        super().__init__(classifier, seed=seed, name=name)
        for argument, value in {
            "compatibility_weight": compatibility_weight,
            "label_weight": label_weight,
            "graph_weight": graph_weight,
            "kl_weight": kl_weight,
        }.items():
            if not value >= 0:
                raise ValueError(f"`{argument}` must not be negative. Received: {argument}={value}")
        for argument, value in {
            "prior_concentration": prior_concentration,
            "num_neighbours": num_neighbours,
            "hidden_units": hidden_units,
        }.items():
            if not value > 0:
                raise ValueError(f"`{argument}` must be positive. Received: {argument}={value}")
        self.embedding = embedding
        self.compatibility_weight = compatibility_weight
        self.prior_concentration = prior_concentration
        self.label_weight = label_weight
        self.graph_weight = graph_weight
        self.kl_weight = kl_weight
        self.num_neighbours = num_neighbours
        self.hidden_units = hidden_units
        self.enhancing = False

        embedder = _embedding_model(classifier, embedding)
        embedding_size = int(np.prod(embedder.output_shape[1:]))
        self._concentration = tf.function(
            lambda index: self.posterior(index)[0],
            input_signature=[tf.TensorSpec([None], tf.int64)],  # one trace for all sizes
        )
        self.embedding_is_fixed = not embedder.trainable_variables
        # In a function's closure, so that Keras does not save the shared layers a second time.
        self._embed = tf.function(
            lambda features: tf.reshape(embedder(features, training=False), [-1, embedding_size]),
            reduce_retracing=True,
        )
        self.encoder = GraphEncoder(self.num_classes, hidden_units, seed=seed)
        self.encoder.build([(None, embedding_size + self.num_classes), (None, None)])
        self.decoder = _decoder(self.num_classes, hidden_units, seed)

        self.add_table("graph_epoch", (), np.int64)
        self.add_table("graph_row_ends", (None,), np.int64)
        self.add_table("graph_columns", (None,), np.int32)
        self.add_table("graph_values", (None,), np.float32)
        # A~ [Phi; L]: the first layer's propagated input, fixed between two builds.
        self.add_table("propagated", (None, embedding_size + self.num_classes), np.float32)

    def objective(self, logits, candidates, index):
        """R_V + lambda L_o - L_ELBO (warm-up: the minimal loss, Eq. 1), each term [batch]."""
        if not self.enhancing:
            weights = self.progressive_weights(logits, candidates, index)
            return {"classification": losses.weighted_cross_entropy(logits, weights)}
        concentration, adjacency = self.posterior(index)
        log_distribution = dirichlet.log_sample(concentration, seed=self._step_seed())
        distribution = tf.exp(log_distribution)
        confidence = losses.confidence(tf.stop_gradient(logits), candidates)
        target = tf.stop_gradient(losses.restrict(dirichlet.mean(concentration), candidates))
        return {
            # R_V: the classifier's risk under the recovered label distribution
            "classification": losses.weighted_cross_entropy(logits, target),
            # L_o: the distribution agrees with the classifier's confidence
            "compatibility": self.compatibility_weight
            * losses.compatibility(confidence, dirichlet.expected_log(concentration)),
            # E_q[log p(L | A, D)], first term of the ELBO
            "label_reconstruction": self.label_weight
            * losses.label_reconstruction(self.decoder(distribution), candidates),
            # E_q[log p(A | D)], first term of the ELBO
            "graph_reconstruction": self.graph_weight
            * losses.graph_reconstruction(distribution, adjacency),
            # KL(q(D | L, Phi, A) || p(D)), second term of the ELBO
            "kl": self.kl_weight
            * dirichlet.kl_to_symmetric(concentration, self.prior_concentration),
        }

    def posterior(self, index):
        """Dirichlet concentrations of training examples, and the graph among them.

        Args:
            index: The examples [batch], without repetition.

        Returns:
            `(concentration [batch, classes], adjacency [batch, batch])`.
        """
        nodes, rows = graph.block(
            self.tables["graph_row_ends"],
            self.tables["graph_columns"],
            self.tables["graph_values"],
            index,
        )
        raw = self.encoder.block(tf.gather(self.tables["propagated"], nodes), rows)
        concentration = dirichlet.bounded_concentration(raw, lower=1e-2, upper=1e2)
        return concentration, graph.batch_adjacency(rows)

    def _step_seed(self):
        # A function of the step alone: the same in a resumed run.
        step = tf.cast(self.optimizer.iterations, tf.int32)
        return tf.stack([tf.constant(self.seed, tf.int32), step])

    # -- phases and graph -----------------------------------------------------------------------

    def training_callbacks(self):
        """The warm-up switch and the graph's rebuilding."""
        return [WarmUp(), GraphRebuild()]

    def set_enhancing(self, enhancing):
        """Chooses between warm-up and label enhancement; the step is traced anew when it changes."""
        if enhancing != self.enhancing:
            self.enhancing = enhancing
            self.make_train_function(force=True)

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
        for name in ("graph_row_ends", "graph_columns", "graph_values", "propagated"):
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
        return self.epochs_trained - int(self.tables["graph_epoch"])

    def rebuild_graph(self):
        """Builds the graph from the current embeddings of the training data; `GraphRebuild` calls it."""
        embedding_size = self.tables["propagated"].shape[1] - self.num_classes
        embeddings = np.empty((self.num_examples, embedding_size), np.float32)
        self.set_batch_order()  # a row's last bit depends on its neighbours in the batch
        for features, targets in self._training_data:
            embeddings[targets["index"].numpy()] = self._embed(features).numpy()
        neighbours = graph.nearest_neighbours(embeddings, self.num_neighbours, seed=self.seed)
        normalised = graph.normalise(graph.adjacency(neighbours))
        # The scale of a network's embedding is arbitrary and grows; that of the candidates is not.
        embeddings -= embeddings.mean(axis=0)
        embeddings /= np.maximum(embeddings.std(axis=0), 1e-6)
        inputs = np.concatenate([embeddings, self.tables["candidates"].numpy()], axis=1)
        self.tables["graph_row_ends"].assign(normalised.indptr.astype(np.int64))
        self.tables["graph_columns"].assign(normalised.indices.astype(np.int32))
        self.tables["graph_values"].assign(normalised.data)
        self.tables["propagated"].assign(normalised @ inputs)
        self.tables["graph_epoch"].assign(self.epochs_trained)

    # -- what was recovered ---------------------------------------------------------------------

    def concentrations(self, batch_size=1000):
        """Dirichlet concentrations of all training examples [examples, classes]."""
        if not self.has_graph:
            raise ValueError(
                "`concentrations` needs label enhancement to have begun: train beyond the warm-up. "
                f"Received: a model trained for {self.epochs_trained} epochs"
            )
        batches = np.array_split(np.arange(self.num_examples), -(-self.num_examples // batch_size))
        return np.concatenate([self._concentration(index).numpy() for index in batches])

    def label_distributions(self):
        """The posterior means restricted to the candidates [examples, classes].

        During the warm-up these are the classifier's confidences.
        """
        if not self.has_graph:
            return super().label_distributions()
        means = dirichlet.mean(self.concentrations())
        return losses.restrict(means, self.tables["candidates"].numpy().astype("float32")).numpy()

    # -- two optimisers, saving -----------------------------------------------------------------

    def compile(self, optimizer="sgd", *, enhancement_optimizer=None, **kwargs):
        """As Keras's, with a second optimiser.

        Args:
            optimizer: The classifier's optimiser.
            enhancement_optimizer: That of the encoder and the decoder, Adam by default: label
                enhancement helps when it runs on a time scale of its own.
            **kwargs: `metrics`, `run_eagerly`, `steps_per_execution` of `keras.Model.compile`.
        """
        super().compile(optimizer, **kwargs)
        if enhancement_optimizer is None:
            enhancement_optimizer = keras.optimizers.Adam(1e-2)
        self.enhancement_optimizer = keras.optimizers.get(enhancement_optimizer)
        if not self.enhancement_optimizer.built:
            self.enhancement_optimizer.build(self._enhancement_variables())

    def _enhancement_variables(self):
        return [*self.encoder.trainable_variables, *self.decoder.trainable_variables]

    def apply_gradients(self, tape, loss):
        """Updates classifier, encoder and decoder, each group by its optimiser."""
        if not self.enhancing:
            super().apply_gradients(tape, loss)
            return
        classifier, enhancement = self.classifier.trainable_variables, self._enhancement_variables()
        gradients = tape.gradient(loss, classifier + enhancement)
        self.optimizer.apply(gradients[: len(classifier)], classifier)
        self.enhancement_optimizer.apply(gradients[len(classifier) :], enhancement)

    def optimizers(self):
        """Both optimisers."""
        return [self.optimizer, self.enhancement_optimizer]

    def get_compile_config(self):
        """The arguments of `compile`."""
        optimizer = keras.saving.serialize_keras_object(self.enhancement_optimizer)
        return {**super().get_compile_config(), "enhancement_optimizer": optimizer}

    def get_config(self):
        """Constructor arguments."""
        return {**super().get_config(), **{name: getattr(self, name) for name in _SETTINGS}}


_SETTINGS = (
    "embedding",
    "compatibility_weight",
    "prior_concentration",
    "label_weight",
    "graph_weight",
    "kl_weight",
    "num_neighbours",
    "hidden_units",
)


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


def _decoder(num_classes, hidden_units, seed):
    """p(L | D): a three-layer perceptron from a label distribution to logits of the candidate bits."""
    return keras.Sequential(
        [
            keras.Input((num_classes,)),
            layers.Dense(
                hidden_units,
                activation="relu",
                kernel_initializer=keras.initializers.GlorotUniform(seed + 2),
            ),
            layers.Dense(
                hidden_units,
                activation="relu",
                kernel_initializer=keras.initializers.GlorotUniform(seed + 3),
            ),
            layers.Dense(
                num_classes, kernel_initializer=keras.initializers.GlorotUniform(seed + 4)
            ),
        ],
        name="decoder",
    )
