"""VALEN: variational label enhancement for partial-label learning (Xu et al., NeurIPS 2021)."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from valen_tf import checks, dirichlet, losses
from valen_tf.callbacks import Cooldown, GraphRebuild, WarmUp
from valen_tf.graph import convolution, neighbors
from valen_tf.graph.convolution import GraphEncoder
from valen_tf.methods import find, register
from valen_tf.model import keras_hooks
from valen_tf.model.base import PartialLabelModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import scipy.sparse
    import tensorflow_probability as tfp
    from numpy.typing import ArrayLike

WITHHELD = 0.1  # share of the examples that the warm-up leaves out, to judge the neighbors by
MANY_CLASSES = 50  # above, `valen_tf.model.gammas` draws label distributions, and scores them
SAMPLERS = ("tensorflow", "vectorized")


LAMBDA_AND_EPSILON = {
    "settings.compatibility_weight": (0.1, 10.0),
    "settings.prior_concentration": (1e-3, 1.0),
}


class LabelEnhancement(PartialLabelModel):
    """Warms up with the minimal loss, then recovers label distributions on a nearest-neighbor graph.

    A method defines `objective`, which gives `warm_up_terms` while the model is `warming_up`, and
    `rebuild_graph`, which gives a graph to `store_graph`.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer whose output represents an example in the graph;
            by default the input of the last layer (for a linear classifier: the features).
        num_neighbors: Neighbors of an example in the graph.
        coverage: As of `PartialLabelModel`.
        seed: Seed of everything random in training.
        name: Name of the model.
    """

    rules = checks.rules(PartialLabelModel.rules, num_neighbors=checks.COUNT)
    runs_on_xla = False  # neither sparse products nor ragged gathers do
    # Part of the epochs at whose end the learning rates of the default optimizers fall to zero.
    default_cooldown = 0.0

    @checks.checked()
    def __init__(
        self,
        classifier: keras.Model,
        *,
        embedding: str | None,
        num_neighbors: int,
        seed: int,
        name: str | None,
        coverage: float | str = 1.0,
    ) -> None:
        super().__init__(classifier, coverage=coverage, seed=seed, name=name)
        self.embedding = embedding
        self.num_neighbors = num_neighbors
        self.warming_up = True
        classifier = self.classifier
        embedder = keras_hooks.embedder(classifier, embedding)
        if None in embedder.output_shape[1:]:
            raise ValueError(
                "`embedding` must name a layer whose output has a known size, such as one that pools. "
                f"Received: an embedding of shape {embedder.output_shape}"
            )
        self.embedding_size = int(np.prod(embedder.output_shape[1:]))
        self.embedding_is_fixed = not embedder.trainable_variables
        # Behind functions, so that Keras does not save the shared layers a second time; a pair for each
        # model, as TensorFlow warns of retracing where several models share their code.
        self._embed, self._score = (
            tf.function(functools.partial(network, training=False), reduce_retracing=True)
            for network in (embedder, classifier)
        )
        # The graph, a sparse matrix [examples, examples], and after how many epochs it was made.
        self.memory.add("graph_epoch", (), np.int64)
        self.memory.add("graph_row_ends", (None,), np.int64)
        self.memory.add("graph_columns", (None,), np.int32)
        self.memory.add("graph_values", (None,), np.float32)
        self.graph_tables = tuple(
            self.memory[f"graph_{part}"] for part in ("row_ends", "columns", "values")
        )
        self.objective_metric = keras.metrics.Mean(name="objective")
        # The classifier's last confidence; `label_weights` holds its target, which is what was recovered.
        self.memory.add("confidence", (None, self.num_classes), np.float32)

    # -- what a method defines ------------------------------------------------------------------

    def rebuild_graph(self) -> None:
        """Builds the graph from the current embeddings of the training data; `GraphRebuild` calls it."""
        raise NotImplementedError

    # -- phases ---------------------------------------------------------------------------------

    def warm_up_terms(self, logits: tf.Tensor, index: tf.Tensor) -> dict[str, tf.Tensor]:
        """The minimal loss (Eq. 1): cross-entropy against the stored confidences, [batch]."""
        stored = self.read("label_weights", index)
        return {"classification": losses.weighted_cross_entropy(logits, stored)}

    def remember(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> None:
        """The classifier's confidence, which in the warm-up is its next target as well."""
        confidence = losses.confidence(logits, candidates)
        self.write("confidence", index, confidence)
        if self.warming_up:
            self.write("label_weights", index, confidence)

    def report(
        self,
        logits: tf.Tensor,
        candidates: tf.Tensor,
        objective: tf.Tensor,
        size: tf.Tensor | float,
    ) -> None:
        """Logs a loss that is the same in both phases, and what is minimized as `"objective"`.

        The phases minimize different sums, so that their common name would jump where one ends: whatever
        watches `"loss"` (`EarlyStopping`, `ReduceLROnPlateau`) would take the switch for a divergence.
        `"loss"` is that of `evaluate`, so that it compares with `"val_loss"`: the cross-entropy of the
        prediction against its own share inside the candidate set, on true labels the usual one.
        """
        self.objective_metric.update_state(objective, sample_weight=size)
        confidence = losses.confidence(logits, candidates)
        self.loss_metric.update_state(losses.weighted_cross_entropy(logits, confidence))

    @property
    def terms_in_use(self) -> Sequence[str]:
        """Names of the terms that are minimized now."""
        return ("classification",) if self.warming_up else self.term_names

    def training_callbacks(self) -> list[keras.callbacks.Callback]:
        """The warm-up switch, the graph's rebuilding, and the end of the learning rates."""
        return [WarmUp(), GraphRebuild(), Cooldown(self.cooldown)]

    def compile(
        self,
        optimizer: keras.Optimizer | str | None = None,
        *,
        cooldown: float | None = None,
        **kwargs: Any,
    ) -> None:
        """As Keras's, with rates that may fall to zero at the end of `fit`.

        Args:
            optimizer: The classifier's optimizer; by default that of the method's card.
            cooldown: Part of the epochs of `fit` at whose end the learning rates fall to zero, see
                `valen_tf.callbacks.Cooldown`. By default that of the method, and 0 for an optimizer of
                one's own, whose rates are left alone.
            **kwargs: `metrics`, `run_eagerly`, `steps_per_execution` of `keras.Model.compile`.
        """
        if cooldown is None:
            cooldown = self.default_cooldown if optimizer is None else 0.0
        self.cooldown = checks.MOMENTUM("cooldown", cooldown)
        super().compile(optimizer, **kwargs)

    def get_compile_config(self) -> dict:
        """The arguments of `compile`."""
        return {**super().get_compile_config(), "cooldown": self.cooldown}

    @property
    def enhancing(self) -> bool:
        """Whether the warm-up is over."""
        return not self.warming_up

    def set_enhancing(self, enhancing: bool) -> None:
        """Chooses between warm-up and label enhancement; the step is traced anew when it changes."""
        if enhancing == self.warming_up:
            self.warming_up = not enhancing
            self.make_train_function(force=True)

    @property
    def neighbors_at_hand(self) -> int:
        """Neighbors of an example in the graph: as many as were asked for, or all others."""
        return min(self.num_neighbors, self.num_examples - 1)

    # -- the graph ------------------------------------------------------------------------------

    def start_memory(self, candidates: np.ndarray) -> None:
        """Starts anew on other training data, without a graph."""
        if len(candidates) < 2:
            raise ValueError(
                f"{type(self).__name__} compares examples: it needs 2 of them at least. "
                f"Received: {len(candidates)} example"
            )
        if len(candidates) <= self.num_neighbors:
            warnings.warn(
                f"`num_neighbors` is {self.num_neighbors}, but there are {len(candidates)} examples: each "
                f"one's neighbors are the {len(candidates) - 1} others.",
                stacklevel=2,
            )
        if self.has_graph:
            warnings.warn(
                f"These {len(candidates)} training examples are others than those that the model knows: "
                "the classifier goes on from its weights, but what was recovered of labels is forgotten, "
                "and label enhancement begins again with a warm-up. `WarmUp(0)` leaves the warm-up out.",
                stacklevel=2,
            )
        super().start_memory(candidates)
        self.memory["confidence"].assign(self.memory["label_weights"])
        self.forget_features()

    def forget_features(self) -> None:
        """Drops the graph, which the next epoch of label enhancement then builds anew."""
        self.memory.clear("graph_row_ends", "graph_columns", "graph_values")

    def store_graph(self, matrix: scipy.sparse.csr_array) -> None:
        """Stores a graph, a `scipy.sparse.csr_array` [examples, examples], and that it was made now."""
        self.memory["graph_row_ends"].assign(matrix.indptr.astype(np.int64))
        self.memory["graph_columns"].assign(matrix.indices.astype(np.int32))
        self.memory["graph_values"].assign(matrix.data)
        self.memory["graph_epoch"].assign(self.epochs_trained)

    @property
    def has_graph(self) -> bool:
        """Whether label enhancement has begun."""
        return bool(tf.size(self.memory["graph_columns"]) > 0)

    @property
    def graph_age(self) -> float:
        """Epochs since the graph was built; infinite while there is none."""
        if not self.has_graph:
            return np.inf
        if self.embedding_is_fixed:  # so is the graph
            return 0
        return self.epochs_trained - int(self.memory["graph_epoch"].numpy())

    def known_of_labels(self) -> np.ndarray:
        """What is known of all labels before training: the candidates, or the evidence for each label."""
        return self.memory["evidence" if self.has_evidence else "candidates"].numpy()

    def training_features(self) -> Iterator[tuple[tf.Tensor, np.ndarray]]:
        """The training data's batches `(features, index)`, in the order of the current epoch."""
        self.set_batch_order()  # a row's last bit depends on its neighbors in the batch
        for features, targets in self._training_data:
            yield features, targets["index"].numpy()

    def training_embeddings(self) -> np.ndarray:
        """Current embeddings of the training data [examples, features]."""
        return self._training_outputs(self._embed, self.embedding_size)

    def training_logits(self) -> np.ndarray:
        """Current logits of the training data [examples, classes]."""
        return self._training_outputs(self._score, self.num_classes)

    def _training_outputs(self, function, size):
        outputs = np.empty((self.num_examples, size), np.float32)
        for features, index in self.training_features():
            outputs[index] = tf.cast(function(features), tf.float32).numpy().reshape(len(index), -1)
        return outputs


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

    The posterior's share of the pooled target follows from the data: the warm-up leaves a tenth of the
    examples out, and the candidate sets of these examples tell how far neighbors can be trusted
    (`valen_tf.graph.neighbors_share`). Where the classifier is the better judge, or learns the embedding,
    the posterior's share falls with the steps, as the classifier takes in what the neighbors say.
    `Valen.as_published` has the choices that the paper prints instead.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer whose output represents an example in the graph;
            by default the input of the last layer (for a linear classifier: the features).
        compatibility_weight: The paper's lambda.
        prior_concentration: The paper's epsilon.
        label_weight: Weight of the candidate sets' reconstruction.
        graph_weight: Weight of the graph's reconstruction.
        kl_weight: Weight of the KL divergence from the prior.
        trust: Share of the posterior in the classifier's target at first, from 0 (the classifier's own
            confidence, as without label enhancement) to 1 (the posterior alone); learned by default.
        trust_steps: Number of steps after which a falling trust is halved; infinite for a constant trust.
        num_neighbors: Neighbors of an example in the graph (k).
        num_components: Of a wider embedding the encoder sees this many principal components; `None` for
            the embedding as it is.
        hidden_units: Width of the encoder's and the decoder's hidden layers.
        sampler: What draws the label distributions: `"tensorflow"`, its generator, or `"vectorized"`,
            `valen_tf.model.gammas`, which draws other numbers in less time, and takes the divergence from
            the prior in float32; by default the first up to 50 classes, the second above.
        coverage: How probable it is that a candidate set holds the true label, above 0 and up to 1; or
            `"estimate"`.
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

    default_cooldown = 0.2

    term_names = (
        "classification",
        "compatibility",
        "label_reconstruction",
        "graph_reconstruction",
        "kl",
    )

    directed = False  # the graph: whether an edge leads from an example to its own neighbors alone

    rules = checks.rules(
        LabelEnhancement.rules,
        compatibility_weight=checks.NOT_NEGATIVE,
        prior_concentration=checks.POSITIVE,
        label_weight=checks.NOT_NEGATIVE,
        graph_weight=checks.NOT_NEGATIVE,
        kl_weight=checks.NOT_NEGATIVE,
        trust=checks.optional(checks.SHARE),
        trust_steps=checks.COUNT,
        num_components=checks.optional(checks.COUNT),
        hidden_units=checks.WIDTH,
        sampler=checks.optional(checks.one_of(*SAMPLERS)),
    )

    @checks.checked(former={"num_neighbours": "num_neighbors"})
    def __init__(
        self,
        classifier: keras.Model,
        *,
        embedding: str | None = None,
        compatibility_weight: float = 1.0,
        prior_concentration: float = 0.01,
        label_weight: float = 0.01,
        graph_weight: float = 3.0,
        kl_weight: float = 0.1,
        trust: float | None = None,
        trust_steps: int = 5_000,
        num_neighbors: int = 10,
        num_components: int | None = 128,
        hidden_units: int = 64,
        sampler: str | None = None,
        coverage: float | str = 1.0,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            classifier,
            embedding=embedding,
            num_neighbors=num_neighbors,
            coverage=coverage,
            seed=seed,
            name=name,
        )
        self.compatibility_weight = compatibility_weight
        self.prior_concentration = prior_concentration
        self.label_weight = label_weight
        self.graph_weight = graph_weight
        self.kl_weight = kl_weight
        self.trust = trust
        self.trust_steps = trust_steps
        self.num_components = num_components
        self.hidden_units = hidden_units
        self.sampler = sampler
        chosen = sampler or SAMPLERS[self.num_classes > MANY_CLASSES]
        self.vectorized = chosen == "vectorized"

        self._concentration = tf.function(
            lambda index: self.posterior(index)[0],
            input_signature=[tf.TensorSpec([None], tf.int64)],  # one trace for all sizes
        )
        components = min(self.embedding_size, num_components or self.embedding_size)
        input_size = components + self.num_classes
        self.encoder = self.make_encoder()
        self.encoder.build([(None, input_size), (None, None)])
        self.decoder = self.make_decoder()

        # A~ [Phi; L]: the first layer's propagated input, fixed between two builds.
        self.memory.add("propagated", (None, input_size), np.float32)
        # Orthonormal directions of the embedding that the encoder sees, where it does not see all.
        self.memory.add("directions", (None, components), np.float32)
        # What the graph was made of: the next one starts from it.
        self.memory.add("neighbors", (None, None), np.int32)
        self.memory.add("graph_recall", (), np.float32)
        self.memory.add("withheld", (None,), np.bool_)
        self.memory.add("trust", (), np.float32)
        # The optimizer's step when training on these data began: an optimizer may have seen others before.
        self.memory.add("trusted_since", (), np.float32)

    def make_encoder(self) -> GraphEncoder:
        """The inference model q(D | L, Phi, A)."""
        return GraphEncoder(self.num_classes, self.hidden_units, seed=self.seed)

    def make_decoder(self) -> keras.Model:
        """The observation model p(L | D)."""
        return decoder(self.num_classes, self.hidden_units, self.seed)

    @classmethod
    def as_published(cls, classifier: keras.Model, **settings: Any) -> PartialLabelModel:
        """The model with the choices that the paper prints, a `ValenPaper`, to compare with.

        Args:
            classifier: A functional or sequential Keras model from features to logits.
            **settings: Those of `ValenPaper`.
        """
        return find("valen_paper")(classifier, **settings)

    # -- the objective --------------------------------------------------------------------------

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The minimal loss in the warm-up; then R_V + lambda L_o - L_ELBO, each term [batch]."""
        if self.warming_up:
            return self.warm_up_terms(logits, index)
        prior = self.prior(candidates)
        share = self.posteriors_share()
        concentration, adjacency = self.posterior(index)
        mean = dirichlet.mean(concentration)
        expected_log = dirichlet.expected_log(concentration, vectorized=self.vectorized)
        divergence = dirichlet.kl(concentration, prior, vectorized=self.vectorized)
        step = (self.seed, self.optimizer.iterations)
        distribution = tf.exp(
            dirichlet.log_sample_of(index, concentration, seed=step, vectorized=self.vectorized)
        )
        own = self.read("confidence", index)
        inferred = losses.restrict(mean, candidates)
        classifier_knows_more = self.memory.tables["trust"] < 0.5
        target = tf.stop_gradient(losses.pooled(own, inferred, share, classifier_knows_more))
        confidence = losses.confidence(tf.stop_gradient(logits), candidates)
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
        self.write("label_weights", index, target)
        return terms

    def prior(self, known: tf.Tensor) -> float | tf.Tensor:
        """Concentration of p(D): the paper's epsilon, or what people's answers make of it [batch, classes].

        Args:
            known: What is known of the labels [batch, classes]: of answers, their likelihoods.
        """
        if self._answers is None:
            return self.prior_concentration
        return dirichlet.informed_prior(known, self.prior_concentration)

    def posteriors_share(self) -> tf.Tensor:
        """How much of the classifier's target is the posterior's opinion, by the trust in the neighbors.

        The rest is the opinion that the classifier had when it last saw the example, as in the warm-up. An
        opinion that follows every step would agree with whatever has just been learned.

        In the long run a constant share has the last word. Where the graph is evidence of its own and the
        better judge, the posterior's share stays. Where the classifier is the better judge, or the graph
        follows from what the classifier has taken in, the posterior's share falls with the steps. Otherwise
        the same evidence would count again in each step. In the end the method is the one without label
        enhancement, from a better start.
        """
        trust = self.memory.tables["trust"]
        steps = tf.cast(self.optimizer.iterations, tf.float32) - self.memory.tables["trusted_since"]
        share = trust / (1.0 + steps / self.trust_steps)
        return tf.where(trust < 0.5, share, trust) if self.embedding_is_fixed else share

    def warm_up_terms(self, logits: tf.Tensor, index: tf.Tensor) -> dict[str, tf.Tensor]:
        """The minimal loss, without the examples that are withheld from it."""
        terms = super().warm_up_terms(logits, index)
        if self.trust is None:
            withheld = self.read("withheld", index)
            terms["classification"] = tf.where(withheld, 0.0, terms["classification"])
        return terms

    def posterior(self, index: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Dirichlet concentrations of training examples, and the graph among them.

        Args:
            index: The examples [batch], without repetition.

        Returns:
            `(concentration [batch, classes], adjacency [batch, batch])`.
        """
        nodes, rows = convolution.block(*self.graph_tables, index)
        adjacency = convolution.batch_adjacency(rows)
        raw = self.encoder.block(tf.gather(self.memory.tables["propagated"], nodes), rows)
        return dirichlet.bounded_concentration(raw, lower=1e-2, upper=1e2), adjacency

    def posterior_distribution(self, index: ArrayLike) -> tfp.distributions.Dirichlet:
        """The posterior of training examples as a `tfp.distributions.Dirichlet`.

        Args:
            index: The examples [batch], without repetition.
        """
        import tensorflow_probability as tfp

        self._check_enhanced("posterior_distribution")
        return tfp.distributions.Dirichlet(self._concentration(np.asarray(index, np.int64)))

    # -- graph ----------------------------------------------------------------------------------

    def start_memory(self, candidates: np.ndarray) -> None:
        """Starts anew on other training data; draws the examples that the warm-up leaves out."""
        super().start_memory(candidates)
        order = np.random.default_rng(self.seed).permutation(len(candidates))
        withheld = np.zeros(len(candidates), bool)
        withheld[order[: int(WITHHELD * len(candidates))]] = True
        self.memory["withheld"].assign(withheld)
        self.memory["trust"].assign(np.nan)  # until the first graph is there
        self.memory["trusted_since"].assign(float(self.optimizer.iterations.value.numpy()))

    def forget_features(self) -> None:
        """Drops the graph, and what goes with it."""
        super().forget_features()
        self.memory.clear("propagated", "neighbors", "directions")

    def rebuild_graph(self) -> None:
        """Makes the graph that of the current embeddings of the training data; `GraphRebuild` calls it.

        Where there are many examples and their embeddings have moved little, the neighbors are
        corrected or kept rather than searched for anew.
        """
        embeddings = self.training_embeddings()
        known = self.known_of_labels()
        found, recall = neighbors.search(
            embeddings,
            self.neighbors_at_hand,
            seed=self.seed,
            previous=self.memory["neighbors"].numpy() if self.has_graph else None,
        )
        adjacency = neighbors.adjacency(found, directed=self.directed)
        if np.isnan(self.memory["trust"].numpy()):
            learned = self.trust is None
            self.memory["trust"].assign(
                self.learned_trust(adjacency, known) if learned else self.trust
            )
        normalized = neighbors.normalize(adjacency)
        seen, directions = neighbors.node_features(embeddings, self.memory["directions"].numpy())
        # The old graph goes first: memory need not hold both, and whoever is interrupted here has none
        # rather than half of each.
        del embeddings, adjacency
        self.forget_features()
        propagated = neighbors.propagate(normalized, seen, known)
        del seen
        self.memory.fill("propagated", propagated)
        del propagated
        self.memory["neighbors"].assign(found)
        self.memory["graph_recall"].assign(recall)
        if directions is not None:
            self.memory["directions"].assign(directions)
        self.store_graph(normalized)

    def learned_trust(self, adjacency: scipy.sparse.csr_array, known: np.ndarray) -> float:
        """How far the neighbors can be trusted, by the candidate sets of the examples that were withheld.

        Args:
            adjacency: The graph, sparse [examples, examples].
            known: What is known of the labels [examples, classes].
        """
        outputs = self.training_logits()
        rows = np.flatnonzero(self.memory["withheld"].numpy())
        own = tf.nn.log_softmax(outputs[rows]).numpy()
        for start in range(0, len(outputs), neighbors.BLOCK):  # in place, as memory is dear
            part = slice(start, start + neighbors.BLOCK)
            outputs[part] = losses.confidence(outputs[part], known[part])
        votes = neighbors.vote(adjacency, outputs, rows)
        return neighbors.neighbors_share(own, np.log(votes), known[rows])

    @property
    def graph_recall(self) -> float:
        """Share of the true nearest neighbors in the graph, measured on a sample when it was made."""
        return float(self.memory["graph_recall"].numpy())

    # -- what was recovered ---------------------------------------------------------------------

    def concentrations(self, batch_size: int = 1000) -> np.ndarray:
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

    def compile(
        self,
        optimizer: keras.Optimizer | str | None = None,
        *,
        enhancement_optimizer: keras.Optimizer | str | None = None,
        **kwargs: Any,
    ) -> None:
        """As Keras's, with a second optimizer.

        Args:
            optimizer: The classifier's optimizer; by default the paper's SGD, 1e-2 with momentum 0.9.
            enhancement_optimizer: The optimizer of the encoder and the decoder; by default AdamW, 1e-2,
                whose weight decay keeps the encoder's weights from growing without end.
            **kwargs: `cooldown` as in `LabelEnhancement.compile`, 0.2 by default; `metrics`,
                `run_eagerly`, `steps_per_execution` of `keras.Model.compile`.
        """
        if enhancement_optimizer is None:
            enhancement_optimizer = self.default_enhancement_optimizer()
        variables = self.enhancement_variables()
        super().compile(optimizer, **kwargs)
        self.enhancement_optimizer = keras.optimizers.get(enhancement_optimizer)
        self.add_update(self.enhancement_optimizer, variables)

    @classmethod
    def default_enhancement_optimizer(
        cls, learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-2
    ) -> keras.Optimizer:
        """The encoder's and the decoder's optimizer where `compile` names none.

        Args:
            learning_rate: A number or a Keras schedule.
        """
        return keras.optimizers.AdamW(learning_rate, weight_decay=0.01)

    def enhancement_variables(self) -> list:
        """Those of the encoder and the decoder."""
        return [*self.encoder.trainable_variables, *self.decoder.trainable_variables]

    def get_compile_config(self) -> dict:
        """The arguments of `compile`."""
        optimizer = keras.saving.serialize_keras_object(self.enhancement_optimizer)
        return {**super().get_compile_config(), "enhancement_optimizer": optimizer}


def decoder(
    num_classes: int, hidden_units: int, seed: int, regularizer: keras.Regularizer | None = None
) -> keras.Model:
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
