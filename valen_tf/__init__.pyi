"""What editors know of the names that `__init__.py` imports when they are first used."""

from valen_tf import callbacks as callbacks
from valen_tf import data as data
from valen_tf import dirichlet as dirichlet
from valen_tf import export as export
from valen_tf import graph as graph
from valen_tf import losses as losses
from valen_tf import methods as methods
from valen_tf import metrics as metrics
from valen_tf import model as model
from valen_tf import networks as networks
from valen_tf import papers as papers
from valen_tf import reports as reports
from valen_tf import runs as runs
from valen_tf import tuning as tuning
from valen_tf.data import candidates as candidates
from valen_tf.data import cards as cards
from valen_tf.data import clean_networks as clean_networks
from valen_tf.data import corruption as corruption
from valen_tf.data import sets as _sets
from valen_tf.data.checking import check as check
from valen_tf.data.dataset import PartialLabelDataset as PartialLabelDataset
from valen_tf.methods import load_model as load_model
from valen_tf.methods.valen import Valen as Valen
from valen_tf.methods.valen_paper import ValenPaper as ValenPaper
from valen_tf.model.base import PartialLabelModel as PartialLabelModel
from valen_tf.model.network_estimator import NetworkClassifier as _NetworkClassifier
from valen_tf.reports.asking import next_to_label as next_to_label
from valen_tf.reports.frame import label_frame as label_frame
from valen_tf.reports.page import report as report
from valen_tf.tuning.comparing import compare as compare

baselines = methods
datasets = _sets
experiments = runs
ValenClassifier: type[_NetworkClassifier]
__version__: str
