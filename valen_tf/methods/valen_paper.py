"""VALEN with the choices that the paper prints, beside which the default's departures can be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from valen_tf import checks, dirichlet, losses
from valen_tf.graph.convolution import GraphEncoder
from valen_tf.methods import register
from valen_tf.methods.valen import LAMBDA_AND_EPSILON, Valen, decoder
from valen_tf.model import replicas

if TYPE_CHECKING:
    from typing import Any


@register(
    "valen_paper",
    learns_from="as `Valen`, with the choices that the paper prints",
    choose_it="to see what each departure buys",
    title="VALEN (as printed)",
    order=20,
    tuning=LAMBDA_AND_EPSILON,
    ablation="valen_non",
)
class ValenPaper(Valen):
    """VALEN to the letter of Xu et al. (2021), where the paper has letters.

    Every term of the evidence lower bound has weight one per example, the graph's squared error *summed*
    over the partners in the batch; the compatibility is that of the sampled label distributions; one
    optimizer, with one weight decay, trains all three networks; the graph leads from an example to its
    own neighbors, is built once after the warm-up, and its convolutions have no bias; the classifier's
    target is the posterior mean restricted to the candidates.

    Where the paper prints nothing (the bounds of the concentrations, the widths, the number of neighbors,
    epsilon, lambda) the values are `Valen`'s.

    Args:
        classifier: A functional or sequential Keras model from features to logits.
        embedding: Name of the classifier's layer whose output represents an example in the graph;
            by default what its last layer receives.
        compatibility_weight: The paper's lambda.
        prior_concentration: The paper's epsilon.
        num_samples: Number of label distributions drawn per example and step, the paper's M.
        rebuild: Whether the graph follows the embedding (`GraphRebuild` says how often) or is built once.
        weight_decay: Weight decay of encoder and decoder; the classifier's is its network's own.
        num_neighbors: Neighbors of an example in the graph (k).
        hidden_units: Width of the encoder's and the decoder's hidden layers.
        seed: Seed of everything random in training.
        name: Name of the model.

    Reference:
        Ning Xu, Congyu Qiao, Xin Geng, Min-Ling Zhang. Instance-Dependent Partial Label Learning.
        NeurIPS 2021.
    """

    directed = True

    default_cooldown = 0.0  # the paper's rates are constant

    rules = checks.rules(
        Valen.rules,
        num_samples=checks.COUNT,
        rebuild=checks.flag,
        weight_decay=checks.NOT_NEGATIVE,
    )

    @checks.checked(former={"num_neighbours": "num_neighbors"})
    def __init__(
        self,
        classifier: keras.Model,
        *,
        embedding: str | None = None,
        compatibility_weight: float = 1.0,
        prior_concentration: float = 0.01,
        num_samples: int = 1,
        rebuild: bool = False,
        weight_decay: float = 1e-4,
        num_neighbors: int = 10,
        hidden_units: int = 64,
        seed: int = 0,
        name: str | None = None,
    ) -> None:
        # Python attributes may be set before Keras's constructor has run, and the networks need this one.
        object.__setattr__(self, "weight_decay", weight_decay)
        super().__init__(
            classifier,
            embedding=embedding,
            compatibility_weight=compatibility_weight,
            prior_concentration=prior_concentration,
            label_weight=1.0,
            graph_weight=1.0,
            kl_weight=1.0,
            trust=1.0,
            num_components=None,
            num_neighbors=num_neighbors,
            hidden_units=hidden_units,
            sampler="tensorflow",
            seed=seed,
            name=name,
        )
        self.num_samples = num_samples
        self.rebuild = rebuild

    def objective(
        self, features: tf.Tensor, logits: tf.Tensor, candidates: tf.Tensor, index: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The minimal loss in the warm-up; then Eqs. 7 to 13 with M draws of each posterior, by example."""
        if self.warming_up:
            return self.warm_up_terms(logits, index)
        concentration, adjacency = self.posterior(index)
        confidence = losses.confidence(tf.stop_gradient(logits), candidates)
        target = tf.stop_gradient(losses.restrict(dirichlet.mean(concentration), candidates))
        partners = tf.cast(replicas.size_of_batch(index)[0], logits.dtype)
        draws = []
        for draw in range(self.num_samples):
            log_distribution = dirichlet.log_sample_of(
                index, concentration, seed=(self.seed, self.optimizer.iterations), draw=draw
            )
            distribution = tf.exp(log_distribution)
            draws.append(
                [
                    losses.compatibility(confidence, log_distribution),
                    losses.label_reconstruction(self.decoder(distribution), candidates),
                    partners * losses.graph_reconstruction(distribution, adjacency),
                ]
            )
        compatibility, labels, graph_error = tf.unstack(tf.reduce_mean(draws, axis=0))
        self.write("label_weights", index, target)
        return {
            "classification": losses.weighted_cross_entropy(logits, target),
            "compatibility": self.compatibility_weight * compatibility,
            "label_reconstruction": labels,
            "graph_reconstruction": graph_error,
            "kl": dirichlet.kl(concentration, self.prior(candidates)),
        }

    def rebuild_graph(self) -> None:
        """Builds the graph once after the warm-up, and again only where `rebuild` asks for it."""
        if self.rebuild or not self.has_graph:
            super().rebuild_graph()

    # -- one optimizer --------------------------------------------------------------------------

    def make_encoder(self) -> GraphEncoder:
        """The inference model, without biases."""
        decay = _decay(self.weight_decay)
        return GraphEncoder(
            self.num_classes, self.hidden_units, use_bias=False, regularizer=decay, seed=self.seed
        )

    def make_decoder(self) -> keras.Model:
        """The observation model."""
        return decoder(self.num_classes, self.hidden_units, self.seed, _decay(self.weight_decay))

    default_enhancement_optimizer = None

    def compile(
        self,
        optimizer: keras.Optimizer | str | None = None,
        *,
        enhancement_optimizer: keras.Optimizer | str | None = None,
        **kwargs: Any,
    ) -> None:
        """As Keras's; the one optimizer trains all three networks.

        Args:
            optimizer: By default the paper's SGD, 1e-2 with momentum 0.9.
            enhancement_optimizer: Not to be given.
            **kwargs: `metrics`, `run_eagerly`, `steps_per_execution` of `keras.Model.compile`.
        """
        if enhancement_optimizer is not None:
            raise ValueError(
                "`enhancement_optimizer` cannot be set: as published, one optimizer trains all three "
                "networks. Received: enhancement_optimizer in compile()"
            )
        super(Valen, self).compile(optimizer, **kwargs)

    def trained_variables(self) -> list:
        """All three networks'."""
        return self.classifier.trainable_variables + self.enhancement_variables()

    def get_compile_config(self) -> dict:
        """The arguments of `compile`."""
        return super(Valen, self).get_compile_config()


def _decay(weight_decay):
    # PyTorch's weight decay: the penalty's gradient is 2 * strength * weight.
    return keras.regularizers.L2(weight_decay / 2) if weight_decay else None
