"""The keys of a config and what each means."""

from __future__ import annotations

import dataclasses
from typing import Any

from valen_tf.runs.config import Config, Data, Network, Training

MEANINGS = {
    "data.name": "named data set; `valen-tf data list` has all",
    "data.data_dir": "folder with the data set's files",
    "data.csv": "a table with a header (CSV, TSV, Parquet) instead of a named data set; --csv FILE is the "
    "same",
    "data.candidates": "the table's column of candidate labels, such as cat|dog",
    "data.label": "the table's column of true labels, where it has one: held-out rows are scored by it",
    "data.separator": "what stands between two candidate labels",
    "data.features": "the table's columns of features, or their kinds (number, category, date, text); by "
    "default all others",
    "data.drop": "columns of the table to leave out",
    "data.id": "columns of the table that name the examples, and stand beside predictions",
    "data.text": "the table's column of texts; it alone, unless data.features names others",
    "data.images": "folder of the pictures that the table's column of features names",
    "data.image_size": "height and width that pictures are scaled to",
    "data.corruption": "how candidate sets are drawn where a data set has true labels alone: "
    "instance_dependent, uniform, or null for none",
    "data.rate": "how much is drawn; by default as much as the procedure's publication",
    "data.at_least_one_wrong": "whether every uniform candidate set has a wrong label",
    "data.corrections": "CSV file of a label report: rows whose label a person has set right",
    "data.unknown": "whether a row without candidates may have any label",
    "data.answers": "file of people's answers on the table's items, or an annotation tool's export; "
    "--answers FILE is the same",
    "data.item": "column of both files that says which item a row is about",
    "data.annotator": "column of the answers that says whose answer a row is",
    "data.answer": "column of the answers with the labels",
    "data.excludes": "column of the answers with labels that were ruled out",
    "data.coverage": "to experiment: the truth is taken out of sets until this share holds it",
    "data.clean_network": "file of the network behind instance-dependent candidate sets; one is trained "
    "where none is named",
    "data.examples": "train on so many examples, drawn with the seed; by default on all",
    "data.test_fraction": "share of the rows that is held out",
    "data.folds": "number of folds of a cross-validation, instead of one split",
    "data.fold": "which of the folds is held out, from 0 on",
    "data.stratified": "whether each class has its share of the held-out rows; the default for tables of "
    "several kinds of columns",
    "data.check": "whether what cannot be meant in the data ends the run",
    "network.name": "the classifier: linear, mlp, convnet, backbone or resnet32",
    "network.hidden_units": "widths of an mlp's hidden layers",
    "network.batch_normalization": "whether an mlp's hidden layers are normalized over the batch",
    "network.weight_decay": "strength of the L2 penalty",
    "network.backbone": "name in Keras Applications, of a backbone",
    "network.weights": "file of a backbone's weights; random ones by default",
    "network.dtype_policy": "what the network computes in: float32, mixed_bfloat16 or mixed_float16",
    "method": "`valen-tf methods` has all; --method NAME is the same",
    "settings": "settings of the method: settings.NAME=VALUE",
    "training.epochs": "passes over the training rows; --epochs N is the same",
    "training.warm_up_epochs": "epochs before labels are enhanced; by default a third, ten at most",
    "training.rebuild_every": "epochs between two builds of the graph",
    "training.cooldown": "part of the epochs at whose end learning rates fall to 0; the method's own",
    "training.batch_size": "rows in a batch",
    "training.optimizer": "sgd or adam",
    "training.learning_rate": "the optimizer's rate",
    "training.momentum": "of sgd",
    "training.enhancement_learning_rate": "rate of the optimizer of VALEN's encoder and decoder",
    "ablation": "whether to train without label enhancement too, to compare",
    "seed": "of everything random",
}
_SECTIONS = {"data": Data, "network": Network, "training": Training}


def defaults() -> dict[str, Any]:
    """Every key of a config and its default, `"training.epochs"` -> 60."""
    found = {}
    for field in dataclasses.fields(Config):
        if field.name in _SECTIONS:
            for key, value in dataclasses.asdict(_SECTIONS[field.name]()).items():
                found[f"{field.name}.{key}"] = value
        else:
            found[field.name] = getattr(Config(), field.name)
    return found
