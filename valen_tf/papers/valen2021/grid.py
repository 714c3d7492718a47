"""The paper's grid: the runs that a table or figure needs."""

import dataclasses
import pathlib

from valen_tf.methods import cards, own_name
from valen_tf.papers.valen2021 import paper, records
from valen_tf.runs.config import Config, read_config
from valen_tf.runs.running import check_names

CONFIGS = pathlib.Path(__file__).parent / "configs"  # in a checkout a link to those at its top
# The flipping probabilities of figures (a) and (b); of (a) their mean over an example's wrong labels.
RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
# One data set of each table, few examples, two trials, and few epochs: everything is touched.
QUICK = {
    "data": ("mnist", "dermatology", "lost", "digits"),  # of the tables; each figure has but one
    "rates": (0.3, 0.6),
    "trials": 2,
    "epochs": 3,
    "examples": 300,
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One training of the grid: its place in the paper, and its config."""

    table: str
    trial: int
    config: Config
    schedule: str = records.PAPER_SCHEDULE
    select: bool = True  # also choose an epoch by held-out candidate sets, in a second training
    lacks: str | None = None  # the clean network's file that the config names and no folder has

    @property
    def name(self):
        """Path of its record below the folder of records, without an ending."""
        return self.name_as(self.config.method)

    def name_as(self, method):
        """The same with another name of the method, under which an earlier version may have run it."""
        data = self.config.data
        place = {"table": self.table, "data": data.name, "rate": data.rate, "trial": self.trial}
        return records.name_of({**place, "method": method})


def runs(
    tables,
    *,
    methods=None,
    datasets=None,
    data_dirs=(),
    quick=False,
    trials=None,
    epochs=None,
    examples=None,
    select=True,
    configs=CONFIGS,
):
    """The runs that tables and figures need.

    Args:
        tables: Names, `"table1"` to `"table5"`, `"figure-a"` to `"figure-c"`, `"digits"`.
        methods: Names of methods; by default all that the table or figure has. The ablation is PRODEN, and
            run once. A method that no table has, such as one from outside, runs where it is named.
        datasets: Names of data sets; by default all that it has.
        data_dirs: Folders with the data; of each set the first that has it is used.
        quick: Whether to run everything in small, to see that it works.
        trials: Number of trials or folds; 5 in the paper.
        epochs: Number of epochs instead of the config's.
        examples: Number of training examples instead of all.
        select: Whether to train a second time with held-out candidate sets (deep methods).
        configs: Folder of the configs, a file per table. Where a method departs from its
            defaults, their section `methods` says so.

    Returns:
        A list of `Run`, trial by trial, so that an interrupted grid has whole rows.
    """
    if quick:
        trials = trials or QUICK["trials"]
        epochs, examples = epochs or QUICK["epochs"], examples or QUICK["examples"]
    wanted = [
        (table, read_config(configs / f"{table}.yaml", [f"data.name={data}", f"method={method}"]))
        for table in tables
        for data in _data_of(table, quick and not datasets)
        if not datasets or data in datasets
        for method in _methods_of(table, [own_name(name) for name in methods or ()])
    ]
    found = []
    for trial in range(trials or paper.TRIALS):
        for table, config in wanted:
            network = config.data.clean_network
            config = _placed(config, trial, data_dirs)
            lacks = network if config.data.clean_network is None else None
            config, schedule = _shortened(config, epochs, examples)
            for rate in _rates_of(table, quick):
                data = dataclasses.replace(config.data, rate=rate or config.data.rate)
                one = dataclasses.replace(config, data=data, ablation=False)
                found.append(Run(table, trial, one, schedule, select, lacks))
    return found


def _data_of(table, quick):
    if table in paper.FIGURES:
        return (paper.FIGURES[table].data,)
    return [name for name in paper.TABLES[table].data if not quick or name in QUICK["data"]]


_BESIDE = ("valen_paper", "valen_authors")  # methods of ours that stand beside the paper's own


def _methods_of(table, named):
    """The methods of a table or figure, in the order of their cards; of these, those that are named."""
    if table in paper.FIGURES:
        own = {own_name(name) for name in paper.FIGURES[table].methods}
    else:
        own = {*paper.TABLES[table].methods, *_BESIDE}
        if "clpl" in own:
            own.add("clpl_softmax")  # which the published CLPL is
    elsewhere = {name for one in paper.TABLES.values() for name in one.methods}
    elsewhere |= {*_BESIDE, "clpl_softmax"}
    own |= set(named) - elsewhere
    return [card.name for card in cards() if card.name in own and (not named or card.name in named)]


def _rates_of(table, quick):
    if table in ("figure-a", "figure-b"):
        return QUICK["rates"] if quick else RATES
    return (None,)


def _placed(config, trial, data_dirs):
    """The config of a trial: a fold, or, where the split is official, a seed; and where the data are."""
    seeds = config.data.folds is None  # a trial is a seed, where it is not a fold
    data = dataclasses.replace(
        config.data,
        fold=0 if seeds else trial,
        data_dir=_folder_of(config.data.name, data_dirs),
        clean_network=_find(config.data.clean_network, data_dirs),
    )
    config = dataclasses.replace(config, data=data, seed=trial if seeds else config.seed)
    check_names(config)
    return config


def _folder_of(name, data_dirs):
    from valen_tf.data.sets import SPECS

    spec = SPECS[name]
    if spec.kind == "images":  # a folder of that name may hold other files than TFDS's
        found = _folder_with(f"{name}/*/dataset_info.json", data_dirs)
    else:
        found = _folder_with(spec.file.rstrip("/"), data_dirs)
    return None if found is None else str(found)


def _folder_with(pattern, data_dirs):
    """The first of the folders, or of those in them, that has a file of the pattern; none if none has."""
    for folder in map(pathlib.Path, data_dirs):
        for place in (folder, *sorted(folder.glob("*/"))):
            if any(place.glob(pattern)):
                return place
    return None


def _find(pattern, data_dirs):
    """The first file of a pattern in the folders or one folder down; none where there is none."""
    folder = _folder_with(pattern, data_dirs) if pattern else None
    return None if folder is None else str(min(folder.glob(pattern)))


def _shortened(config, epochs, examples):
    words = []
    if epochs is not None and epochs != config.training.epochs:
        words.append(f"{epochs} epochs instead of {config.training.epochs}")
        warm_up = config.training.warm_up_epochs  # none: a third of the epochs anyway
        if warm_up is not None:
            warm_up = min(warm_up, max(1, epochs // 3))
        training = dataclasses.replace(config.training, epochs=epochs, warm_up_epochs=warm_up)
        config = dataclasses.replace(config, training=training)
    if examples is not None:
        words.append(f"at most {examples} training examples")
        config = dataclasses.replace(
            config, data=dataclasses.replace(config.data, examples=examples)
        )
    if config.network.dtype_policy is not None:
        words.append(f"computed in {config.network.dtype_policy}")
    return config, ", ".join(words) or records.PAPER_SCHEDULE
