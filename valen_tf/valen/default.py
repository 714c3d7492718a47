"""VALEN: variational label enhancement for partial-label learning (Xu et al., NeurIPS 2021)."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from valen_tf import dirichlet, graph, losses, neighbours
from valen_tf import trust as trusting
from valen_tf.checks import check_settings
from valen_tf.encoder import GraphEncoder
from valen_tf.enhancement import LabelEnhancement

WITHHELD = 0.1  # share of the examples that the warm-up leaves out, to judge the neighbours by


@keras.saving.register_keras_serializable(package="valen_tf")
class Valen(LabelEnhancement):
    """VALEN: recovers a label distribution for every example and trains the classifier on it.

    After a warm-up with the minimal loss, every step infers a Dirichlet posterior over each example's
    label distribution with a graph convolutional network, and trains the classifier on the posterior
    mean, pooled with the classifier's own opinion and restricted to the candidates. Everything is updated
    together; prediction needs the classifier alone.

    How much of the pooled target is the posterior's follows from the data: the warm-up leaves a tenth of
    the examples out, and their candidate sets tell how far neighbours can be trusted (`valen_tf.trust`).
    That share falls with the steps, as the classifier takes in what the neighbours say.
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
        trust_steps: Number of steps after which half of the trust is left, where the classifier learns the
            embedding; infinite for a trust that stays.
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
        graph_weight=3.0,
        kl_weight=0.1,
        trust=None,
        trust_steps=20_000,
        num_neighbours=10,
        hidden_units=64,
        seed=0,
        name=None,
    ):
        super().__init__(
            classifier, embedding=embedding, num_neighbours=num_neighbours, seed=seed, name=name
        )
        check_settings(
            not_negative={
                "compatibility_weight": compatibility_weight,
                "label_weight": label_weight,
                "graph_weight": graph_weight,
                "kl_weight": kl_weight,
            },
            positive={
                "prior_concentration": prior_concentration,
                "trust_steps": trust_steps,
                "hidden_units": hidden_units,
            },
            shares={} if trust is None else {"trust": trust},
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

        # A~ [Phi; L]: the first layer's propagated input, fixed between two builds.
        self.add_table("propagated", (None, input_size), np.float32)
        # What the graph was made of: the next one starts from it.
        self.add_table("neighbours", (None, num_neighbours), np.int32)
        self.add_table("graph_recall", (), np.float32)
        self.add_table("withheld", (None,), np.bool_)
        self.add_table("trust", (), np.float32)
        # The optimiser's step when training on these data began: an optimiser may have seen others before.
        self.add_table("trusted_since", (), np.float32)

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
        from valen_tf.valen.published import ValenPaper  # which is made of this class

        return ValenPaper(classifier, **settings)

    # -- the objective --------------------------------------------------------------------------

    def minimal_loss(self, logits, index):
        """The warm-up's loss, without the examples that are withheld from it [batch]."""
        loss = super().minimal_loss(logits, index)
        if self.trust is not None:
            return loss
        return tf.where(tf.gather(self.tables["withheld"], index), 0.0, loss)

    def enhancement(self, features, logits, candidates, index):
        """R_V + lambda L_o - L_ELBO, each term [batch]."""
        concentration, adjacency = self.posterior(index)
        distribution = tf.exp(self.log_sample(concentration, index))
        confidence = losses.confidence(tf.stop_gradient(logits), candidates)
        target = tf.stop_gradient(self.target(logits, confidence, concentration, candidates))
        self.set_weights_of(index, target)
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

    def target(self, logits, confidence, concentration, candidates):
        """What the classifier learns from [batch, classes]: its own opinion and the posterior mean, pooled.

        On the features themselves the graph is evidence of its own throughout, and the target is the
        mixture (1 - trust) confidence + trust mean: as unsure as the two opinions are apart.

        Where the classifier learns the embedding, the graph follows from what it has taken in. The trust
        falls as 1 / (1 + steps / trust_steps), so that the same evidence does not count again in every step;
        and the target is the product softmax^(1 - trust) mean^trust, which leaves a sure classifier alone.
        """
        mean = dirichlet.mean(concentration)
        trust = self.tables["trust"]
        if self.embedding_is_fixed:
            return (1.0 - trust) * confidence + trust * losses.restrict(mean, candidates)
        steps = tf.cast(self.optimizer.iterations, tf.float32) - self.tables["trusted_since"]
        trust = trust / (1.0 + steps / self.trust_steps)
        return losses.confidence((1.0 - trust) * logits + trust * tf.math.log(mean), candidates)

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

    def posterior_distribution(self, index):
        """The posterior of training examples as a `tfp.distributions.Dirichlet`.

        Args:
            index: The examples [batch], without repetition.
        """
        import tensorflow_probability as tfp

        self._check_enhanced("posterior_distribution")
        return tfp.distributions.Dirichlet(self._concentration(np.asarray(index, np.int64)))

    def remember(self, features, logits, candidates, index):
        """The confidences in the warm-up; after it `enhancement` keeps what the classifier learned from."""
        if not self.enhancing:
            super().remember(features, logits, candidates, index)

    # -- graph ----------------------------------------------------------------------------------

    def start_tables(self, candidates):
        """Starts anew on other training data; draws the examples that the warm-up leaves out."""
        super().start_tables(candidates)
        order = np.random.default_rng(self.seed).permutation(len(candidates))
        withheld = np.zeros(len(candidates), bool)
        withheld[order[: int(WITHHELD * len(candidates))]] = True
        self.tables["withheld"].assign(withheld)
        self.tables["trust"].assign(np.nan)  # until the first graph is there
        self.tables["trusted_since"].assign(float(self.optimizer.iterations.value.numpy()))

    def forget_features(self):
        """Drops the graph, and what goes with it."""
        super().forget_features()
        for name in ("propagated", "neighbours"):
            self.tables[name].assign(self.tables[name][:0])

    def rebuild_graph(self):
        """Makes the graph that of the current embeddings of the training data; `GraphRebuild` calls it.

        Where there are many examples and their embeddings have moved little, the neighbours are
        corrected or kept rather than searched for anew.
        """
        embeddings = self.training_embeddings()
        found, recall = neighbours.search(
            embeddings,
            self.num_neighbours,
            seed=self.seed,
            previous=self.tables["neighbours"].numpy() if self.has_graph else None,
        )
        adjacency = self.adjacency(found)
        if np.isnan(self.tables["trust"].numpy()):
            self.tables["trust"].assign(self.learned_trust(adjacency))
        normalised = graph.normalise(adjacency)
        # The scale of a network's embedding is arbitrary and grows; that of the candidates is not.
        embeddings -= embeddings.mean(axis=0)
        embeddings /= np.maximum(embeddings.std(axis=0), 1e-6)
        self.set_graph(normalised)
        self.tables["neighbours"].assign(found)
        self.tables["graph_recall"].assign(recall)
        self.tables["propagated"].assign(
            graph.propagate(normalised, embeddings, self.tables["candidates"].numpy())
        )

    def adjacency(self, found):
        """The graph with self-loops of a neighbour table [examples, k], sparse."""
        return graph.adjacency(found)

    def learned_trust(self, adjacency):
        """The share of the posterior in the classifier's target, from the withheld candidate sets."""
        if self.trust is not None:
            return self.trust
        rows = np.flatnonzero(self.tables["withheld"].numpy())
        logits, candidates = self.training_logits(), self.tables["candidates"].numpy()
        votes = trusting.vote(adjacency, losses.confidence(logits, candidates).numpy(), rows)
        own = tf.nn.log_softmax(logits[rows]).numpy()
        return trusting.neighbours_share(own, np.log(votes), candidates[rows])

    @property
    def graph_recall(self):
        """Share of the true nearest neighbours in the graph, measured on a sample when it was made."""
        return float(self.tables["graph_recall"].numpy())

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

    # -- two optimisers, saving -----------------------------------------------------------------

    def compile(self, optimizer=None, *, enhancement_optimizer=None, **kwargs):
        """As Keras's, with a second optimiser.

        Args:
            optimizer: The classifier's optimiser; by default the paper's SGD, 1e-2 with momentum 0.9.
            enhancement_optimizer: That of the encoder and the decoder; by default AdamW, 1e-2, whose weight
                decay keeps the encoder's weights from growing without end.
            **kwargs: `metrics`, `run_eagerly`, `steps_per_execution` of `keras.Model.compile`.
        """
        super().compile(optimizer, **kwargs)
        if enhancement_optimizer is None:
            enhancement_optimizer = self.default_enhancement_optimizer()
        self.enhancement_optimizer = keras.optimizers.get(enhancement_optimizer)
        if not self.enhancement_optimizer.built:
            self.enhancement_optimizer.build(self._enhancement_variables())

    @classmethod
    def default_enhancement_optimizer(cls, learning_rate=1e-2):
        """The encoder's and the decoder's optimiser where `compile` names none.

        Args:
            learning_rate: A number or a Keras schedule.
        """
        return keras.optimizers.AdamW(learning_rate, weight_decay=0.01)

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
        # Keras's loss scaling is the classifier's: encoder and decoder compute in float32.
        scale = self.optimizer.scale_loss(1.0)
        unscaled = [gradient / scale for gradient in gradients[len(classifier) :]]
        self.enhancement_optimizer.apply(unscaled, enhancement)

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
    "compatibility_weight",
    "prior_concentration",
    "label_weight",
    "graph_weight",
    "kl_weight",
    "trust",
    "trust_steps",
    "hidden_units",
)


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
