"""VALEN: variational label enhancement for partial-label learning (Xu et al., NeurIPS 2021)."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from spektral.layers import GCNConv

from valen_tf import checks, dirichlet, losses
from valen_tf.checks import accepts_former_names
from valen_tf.graph import search, sparse
from valen_tf.graph import trust as trusting
from valen_tf.methods import find, register
from valen_tf.model.enhancement import LabelEnhancement

WITHHELD = 0.1  # share of the examples that the warm-up leaves out, to judge the neighbors by


LAMBDA_AND_EPSILON = {
    "settings.compatibility_weight": (0.1, 10.0),
    "settings.prior_concentration": (1e-3, 1.0),
}


@register(
    "valen",
    learns_from="label distributions recovered on a graph of the examples",
    choose_it="when wrong candidates resemble the true label, which is the usual case",
    title="VALEN",
    order=10,
    tuning=LAMBDA_AND_EPSILON,
    ablation="valen_non",
)
class Valen(LabelEnhancement):
    """VALEN: recovers a label distribution for every example and trains the classifier on it.

    After a warm-up with the minimal loss, every step infers a Dirichlet posterior over each example's
    label distribution with a graph convolutional network, and trains the classifier on the posterior
    mean, pooled with the classifier's own opinion and restricted to the candidates. Everything is updated
    together; prediction needs the classifier alone.

    How much of the pooled target is the posterior's follows from the data: the warm-up leaves a tenth of
    the examples out, and their candidate sets tell how far neighbors can be trusted
    (`valen_tf.graph.trust`).
    Where the classifier is the better judge, or learns the embedding, that share falls with the steps, as
    the classifier takes in what the neighbors say.
    `Valen.as_published` has the choices that the paper prints instead.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer whose output represents an example in the graph;
            by default what its last layer receives (for a linear classifier: the features).
        compatibility_weight: The paper's lambda.
        prior_concentration: The paper's epsilon.
        label_weight: Weight of the candidate sets' reconstruction.
        graph_weight: Weight of the graph's reconstruction.
        kl_weight: Weight of the KL divergence from the prior.
        trust: Share of the posterior in the classifier's target at first, from 0 (the classifier's own
            confidence, as without label enhancement) to 1 (the posterior alone); learned by default.
        trust_steps: Number of steps after which half of a trust that falls is left; infinite for one that
            stays.
        num_neighbors: Neighbors of an example in the graph (k).
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

    rules = checks.rules(
        LabelEnhancement.rules,
        compatibility_weight=checks.NOT_NEGATIVE,
        prior_concentration=checks.POSITIVE,
        label_weight=checks.NOT_NEGATIVE,
        graph_weight=checks.NOT_NEGATIVE,
        kl_weight=checks.NOT_NEGATIVE,
        trust=checks.optional(checks.SHARE),
        trust_steps=checks.COUNT,
        hidden_units=checks.WIDTH,
    )

    @accepts_former_names(num_neighbours="num_neighbors")
    @checks.checked()
    def __init__(
        self,
        classifier,
        *,
        embedding=None,
        compatibility_weight=1.0,
        prior_concentration=0.01,
        label_weight=0.01,
        graph_weight=3.0,
        kl_weight=0.1,
        trust=None,
        trust_steps=20_000,
        num_neighbors=10,
        hidden_units=64,
        seed=0,
        name=None,
    ):
        super().__init__(
            classifier, embedding=embedding, num_neighbors=num_neighbors, seed=seed, name=name
        )
        self.compatibility_weight = compatibility_weight
        self.prior_concentration = prior_concentration
        self.label_weight = label_weight
        self.graph_weight = graph_weight
        self.kl_weight = kl_weight
        self.trust = trust
        self.trust_steps = trust_steps
        self.hidden_units = hidden_units

        self._concentration = tf.function(
            lambda index: self.posterior(index)[0],
            input_signature=[tf.TensorSpec([None], tf.int64)],  # one trace for all sizes
        )
        input_size = self.embedding_size + self.num_classes
        self.encoder = self.make_encoder()
        self.encoder.build([(None, input_size), (None, None)])
        self.decoder = self.make_decoder()
        self.graph_tables = self.graph.csr

        # A~ [Phi; L]: the first layer's propagated input, fixed between two builds.
        self.memory.add("propagated", (None, input_size), np.float32)
        # What the graph was made of: the next one starts from it.
        self.memory.add("neighbors", (None, num_neighbors), np.int32)
        self.memory.add("graph_recall", (), np.float32)
        self.memory.add("withheld", (None,), np.bool_)
        self.memory.add("trust", (), np.float32)
        # The optimizer's step when training on these data began: an optimizer may have seen others before.
        self.memory.add("trusted_since", (), np.float32)

    def make_encoder(self):
        """The inference model q(D | L, Phi, A)."""
        return GraphEncoder(self.num_classes, self.hidden_units, seed=self.seed)

    def make_decoder(self):
        """The observation model p(L | D)."""
        return decoder(self.num_classes, self.hidden_units, self.seed)

    @classmethod
    def as_published(cls, classifier, **settings):
        """The model with the choices that the paper prints, a `ValenPaper`, to compare with.

        Args:
            classifier: A functional or sequential Keras model from features to logits.
            **settings: Those of `ValenPaper`.
        """
        return find("valen_paper")(classifier, **settings)

    # -- the objective --------------------------------------------------------------------------

    def objective(self, features, logits, candidates, index):
        """The minimal loss in the warm-up; then R_V + lambda L_o - L_ELBO, each term [batch]."""
        if self.warming_up:
            return self.warm_up_terms(logits, index)
        concentration, adjacency = self.posterior(index)
        mean = dirichlet.mean(concentration)
        expected_log = dirichlet.expected_log(concentration)
        divergence = dirichlet.kl_to_symmetric(concentration, self.prior_concentration)
        step = (self.seed, self.optimizer.iterations)
        distribution = tf.exp(dirichlet.log_sample_of(index, concentration, seed=step))
        confidence = losses.confidence(tf.stop_gradient(logits), candidates)
        target = tf.stop_gradient(self.pooled(logits, confidence, mean, candidates))
        terms = {
            # R_V: the classifier's risk under the recovered label distribution
            "classification": losses.weighted_cross_entropy(logits, target),
            # L_o: the distribution agrees with the classifier's confidence
            "compatibility": self.compatibility_weight
            * losses.compatibility(confidence, expected_log),
            # E_q[log p(L | A, D)], first term of the ELBO
            "label_reconstruction": self.label_weight
            * losses.label_reconstruction(self.decoder(distribution), candidates),
            # E_q[log p(A | D)], first term of the ELBO
            "graph_reconstruction": self.graph_weight
            * losses.graph_reconstruction(distribution, adjacency),
            # KL(q(D | L, Phi, A) || p(D)), second term of the ELBO
            "kl": self.kl_weight * divergence,
        }
        return terms, target

    def pooled(self, logits, confidence, mean, candidates):
        """The classifier's target [batch, classes]: its own opinion and the posterior's, by the trust.

        In the long run, whichever opinion does not give way has the last word. Where the graph is evidence
        of its own and the better judge, the posterior's share stays, in a mixture that is as unsure as the
        opinions are apart. Where the classifier is the better judge, or the graph follows from what the
        classifier has taken in, the posterior's share falls with the steps, or the same evidence would
        count again in each of them; and a product leaves a sure classifier alone.
        """
        trust = self.memory.tables["trust"]
        since = self.memory.tables["trusted_since"]
        steps = tf.cast(self.optimizer.iterations, tf.float32) - since
        left = trust / (1.0 + steps / self.trust_steps)
        product = losses.confidence((1.0 - left) * logits + left * tf.math.log(mean), candidates)
        if not self.embedding_is_fixed:
            return product
        mixture = (1.0 - trust) * confidence + trust * losses.restrict(mean, candidates)
        return tf.where(trust < 0.5, product, mixture)

    def warm_up_terms(self, logits, index):
        """The minimal loss, without the examples that are withheld from it."""
        terms = super().warm_up_terms(logits, index)
        if self.trust is not None:
            return terms
        withheld = self.read("withheld", index)
        return {name: tf.where(withheld, 0.0, term) for name, term in terms.items()}

    def posterior(self, index):
        """Dirichlet concentrations of training examples, and the graph among them.

        Args:
            index: The examples [batch], without repetition.

        Returns:
            `(concentration [batch, classes], adjacency [batch, batch])`.
        """
        nodes, rows = sparse.block(*self.graph_tables, index)
        adjacency = sparse.batch_adjacency(rows)
        raw = self.encoder.block(tf.gather(self.memory.tables["propagated"], nodes), rows)
        return dirichlet.bounded_concentration(raw, lower=1e-2, upper=1e2), adjacency

    def posterior_distribution(self, index):
        """The posterior of training examples as a `tfp.distributions.Dirichlet`.

        Args:
            index: The examples [batch], without repetition.
        """
        import tensorflow_probability as tfp

        self._check_enhanced("posterior_distribution")
        return tfp.distributions.Dirichlet(self._concentration(np.asarray(index, np.int64)))

    # -- graph ----------------------------------------------------------------------------------

    def start_memory(self, candidates):
        """Starts anew on other training data; draws the examples that the warm-up leaves out."""
        super().start_memory(candidates)
        order = np.random.default_rng(self.seed).permutation(len(candidates))
        withheld = np.zeros(len(candidates), bool)
        withheld[order[: int(WITHHELD * len(candidates))]] = True
        self.memory["withheld"].assign(withheld)
        self.memory["trust"].assign(np.nan)  # until the first graph is there
        self.memory["trusted_since"].assign(float(self.optimizer.iterations.value.numpy()))

    def forget_features(self):
        """Drops the graph, and what goes with it."""
        super().forget_features()
        self.memory.clear("propagated", "neighbors")

    def rebuild_graph(self):
        """Makes the graph that of the current embeddings of the training data; `GraphRebuild` calls it.

        Where there are many examples and their embeddings have moved little, the neighbors are
        corrected or kept rather than searched for anew.
        """
        embeddings = self.training_embeddings()
        found, recall = search.search(
            embeddings,
            self.num_neighbors,
            seed=self.seed,
            previous=self.memory["neighbors"].numpy() if self.graph else None,
        )
        adjacency = self.adjacency(found)
        if np.isnan(self.memory["trust"].numpy()):
            self.memory["trust"].assign(self.learned_trust(adjacency))
        normalized = sparse.normalize(adjacency)
        # The scale of a network's embedding is arbitrary and grows; that of the candidates is not.
        embeddings -= embeddings.mean(axis=0)
        embeddings /= np.maximum(embeddings.std(axis=0), 1e-6)
        self.graph.store(normalized, self.epochs_trained)
        self.memory["neighbors"].assign(found)
        self.memory["graph_recall"].assign(recall)
        self.memory["propagated"].assign(
            sparse.propagate(normalized, embeddings, self.known_of_labels())
        )

    def adjacency(self, found):
        """The graph with self-loops of a neighbor table [examples, k], sparse."""
        return sparse.adjacency(found)

    def learned_trust(self, adjacency):
        """The share of the posterior in the classifier's target, from the withheld candidate sets."""
        if self.trust is not None:
            return self.trust
        rows = np.flatnonzero(self.memory["withheld"].numpy())
        logits, candidates = self.training_logits(), self.known_of_labels()
        votes = trusting.vote(adjacency, losses.confidence(logits, candidates).numpy(), rows)
        own = tf.nn.log_softmax(logits[rows]).numpy()
        return trusting.neighbors_share(own, np.log(votes), candidates[rows])

    @property
    def graph_recall(self):
        """Share of the true nearest neighbors in the graph, measured on a sample when it was made."""
        return float(self.memory["graph_recall"].numpy())

    # -- what was recovered ---------------------------------------------------------------------

    def concentrations(self, batch_size=1000):
        """Dirichlet concentrations of all training examples [examples, classes]."""
        self._check_enhanced("concentrations")
        batches = np.array_split(np.arange(self.num_examples), -(-self.num_examples // batch_size))
        return np.concatenate([self._concentration(index).numpy() for index in batches])

    def _check_enhanced(self, method):
        if not self.has_graph:
            raise ValueError(
                f"`{method}` needs label enhancement to have begun: train beyond the warm-up. "
                f"Received: a model trained for {self.epochs_trained} epochs"
            )

    # -- two optimizers, saving -----------------------------------------------------------------

    def compile(self, optimizer=None, *, enhancement_optimizer=None, **kwargs):
        """As Keras's, with a second optimizer.

        Args:
            optimizer: The classifier's optimizer; by default the paper's SGD, 1e-2 with momentum 0.9.
            enhancement_optimizer: That of the encoder and the decoder; by default AdamW, 1e-2, whose weight
                decay keeps the encoder's weights from growing without end.
            **kwargs: `metrics`, `run_eagerly`, `steps_per_execution` of `keras.Model.compile`.
        """
        super().compile(optimizer, **kwargs)
        if enhancement_optimizer is None:
            enhancement_optimizer = self.default_enhancement_optimizer()
        self.enhancement_optimizer = keras.optimizers.get(enhancement_optimizer)
        self.add_update(self.enhancement_optimizer, self.enhancement_variables())

    @classmethod
    def default_enhancement_optimizer(cls, learning_rate=1e-2):
        """The encoder's and the decoder's optimizer where `compile` names none.

        Args:
            learning_rate: A number or a Keras schedule.
        """
        return keras.optimizers.AdamW(learning_rate, weight_decay=0.01)

    def enhancement_variables(self):
        """Those of the encoder and the decoder."""
        return [*self.encoder.trainable_variables, *self.decoder.trainable_variables]

    def get_compile_config(self):
        """The arguments of `compile`."""
        optimizer = keras.saving.serialize_keras_object(self.enhancement_optimizer)
        return {**super().get_compile_config(), "enhancement_optimizer": optimizer}


def decoder(num_classes, hidden_units, seed, regularizer=None):
    """p(L | D): a three-layer perceptron from a label distribution to logits of the candidate bits."""

    def dense(units, seed, activation=None):
        return layers.Dense(
            units,
            activation=activation,
            kernel_initializer=keras.initializers.GlorotUniform(seed),
            kernel_regularizer=regularizer,
            bias_regularizer=regularizer,
            dtype="float32",  # as the posterior, whatever the policy of the classifier
        )

    hidden = [dense(hidden_units, seed + 2, "relu"), dense(hidden_units, seed + 3, "relu")]
    inputs = keras.Input((num_classes,), dtype="float32")
    return keras.Sequential([inputs, *hidden, dense(num_classes, seed + 4)], name="decoder")


@keras.saving.register_keras_serializable(package="valen_tf")
class GraphConvolution(GCNConv):
    """Spektral's `GCNConv` on Keras 3, which can also continue from inputs that are already propagated.

    Keras 3 passes a mask for every input and Spektral multiplies by it; a `call` without a mask
    argument keeps Keras from doing so.
    """

    def call(self, inputs):
        """activation(A X W + b) of inputs `(X, A)`; A may be a rectangular sparse block."""
        return super().call(inputs)

    def transform(self, propagated):
        """The same layer on A X instead of `(X, A)`, as A (X W) = (A X) W. [rows, channels]."""
        transformed = keras.ops.matmul(propagated, self.kernel)
        return self.activation(transformed + self.bias if self.use_bias else transformed)


@keras.saving.register_keras_serializable(package="valen_tf")
class GraphEncoder(keras.layers.Layer):
    """Two graph convolutions, A~ ReLU(A~ Z W0 + b0) W1 + b1 (Kipf & Welling, 2017).

    Between two builds of the graph A~ Z does not change, so the first layer is dense on its rows and a
    batch needs only its one-hop neighbourhood for the second: `block` gives exactly the rows that
    `call` gives on the whole graph.

    Args:
        num_classes: Number of outputs of every example.
        hidden_units: Width of the hidden layer.
        use_bias: Whether the convolutions add a bias; as printed by Kipf & Welling they have none.
        regularizer: Penalty of the weights, or none.
        seed: Seed of the initial weights.
    """

    def __init__(
        self, num_classes, hidden_units=64, use_bias=True, regularizer=None, seed=0, **kwargs
    ):
        # The posterior is of float32 whatever the policy of the classifier.
        super().__init__(**{"dtype": "float32", **kwargs})
        self.num_classes, self.hidden_units, self.seed = num_classes, hidden_units, seed
        self.use_bias = use_bias
        self.regularizer = keras.regularizers.get(regularizer)
        options = {"use_bias": use_bias, "kernel_regularizer": self.regularizer, "dtype": "float32"}
        glorot = keras.initializers.GlorotUniform
        self.hidden = GraphConvolution(
            hidden_units, activation="relu", kernel_initializer=glorot(seed), **options
        )
        self.output_layer = GraphConvolution(
            num_classes, kernel_initializer=glorot(seed + 1), **options
        )

    def build(self, input_shape):
        """Builds both layers for inputs `(Z, A)` of the given shapes."""
        features, graph = input_shape
        self.hidden.build([features, graph])
        self.output_layer.build([(features[0], self.hidden_units), graph])

    def call(self, inputs):
        """The whole graph's outputs [examples, classes] from `(Z, A~)`."""
        features, graph = inputs
        return self.output_layer([self.hidden([features, graph]), graph])

    def block(self, propagated, rows):
        """A batch's outputs [batch, classes].

        Args:
            propagated: Rows of A~ Z for the batch's neighbourhood [nodes, features].
            rows: A~[batch, nodes], sparse.
        """
        return self.output_layer([self.hidden.transform(propagated), rows])

    def get_config(self):
        """Constructor arguments."""
        config = {"num_classes": self.num_classes, "hidden_units": self.hidden_units}
        config |= {"use_bias": self.use_bias, "seed": self.seed}
        config["regularizer"] = keras.regularizers.serialize(self.regularizer)
        return {**super().get_config(), **config}
