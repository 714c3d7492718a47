"""What is known of every data set before a file is opened: one row each."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PALM = "the PALM group's partial-label page (Min-Ling Zhang, Southeast University)"
ACADEMIC = "academic purpose only"
UCI = "the UCI Machine Learning Repository"
TFDS = "TensorFlow Datasets"
_PALM_PAGE = "https://palm.seu.edu.cn/zhangml/Resources.htm#partial_data"
_UCI_PAGE = "https://archive.ics.uci.edu/dataset/"
_TFDS_PAGE = "https://www.tensorflow.org/datasets/catalog/"


@dataclasses.dataclass(frozen=True)
class Spec:
    """One data set.

    Args:
        name: What `valen_tf.datasets.load` takes.
        title: What people call it.
        kind: `"embedded"`, `"images"`, `"uci"`, `"text"`, `"real-world"` or `"human"`.
        examples: Numbers of examples: all, or training and test where an official split exists.
        shape: Shape of the features of one example.
        classes: Number of classes.
        candidates: Average size of its own candidate sets, to two digits; `None` where only the
            true labels are known.
        file: Public file name; of an image set, the folder that TFDS prepares.
        source: Where to get it, in words.
        licence: What is known of its licence.
        citation: Whom to cite.
        address: Where its publisher has it.
        sha256: Checksum of the file that the records of this project were made with; `None` where there
            is no such file.
    """

    name: str
    title: str
    kind: str
    examples: tuple[int, ...]
    shape: tuple[int, ...]
    classes: int
    candidates: float | None
    file: str
    source: str
    licence: str
    citation: str
    address: str
    sha256: str | None = None


# Whose clean network drew instance-dependent candidate sets, in words that a record keeps.
AUTHORS_NETWORK = "authors' form, 400 epochs"
TRAINED_NETWORK = "trained here, 20 epochs"  # by `train_clean_network` as it is

_ROWS = (
    Spec(
        name="digits",
        title="Handwritten digits",
        kind="embedded",
        examples=(1797,),
        shape=(64,),
        classes=10,
        candidates=None,
        file="(in scikit-learn)",
        source="scikit-learn, from " + UCI,
        licence="CC BY 4.0",
        citation="E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits, UCI, 1998",
        address=_UCI_PAGE + "80/optical+recognition+of+handwritten+digits",
    ),
    Spec(
        name="mnist",
        title="MNIST",
        kind="images",
        examples=(60000, 10000),
        shape=(28, 28, 1),
        classes=10,
        candidates=None,
        file="mnist/",
        source=TFDS,
        licence="CC BY-SA 3.0",
        citation="Y. LeCun et al. Gradient-based learning applied to document recognition, Proc. IEEE 1998",
        address=_TFDS_PAGE + "mnist",
    ),
    Spec(
        name="kmnist",
        title="Kuzushiji-MNIST",
        kind="images",
        examples=(60000, 10000),
        shape=(28, 28, 1),
        classes=10,
        candidates=None,
        file="kmnist/",
        source=TFDS,
        licence="CC BY-SA 4.0",
        citation="T. Clanuwat et al. Deep Learning for Classical Japanese Literature, 2018",
        address=_TFDS_PAGE + "kmnist",
    ),
    Spec(
        name="fashion_mnist",
        title="Fashion-MNIST",
        kind="images",
        examples=(60000, 10000),
        shape=(28, 28, 1),
        classes=10,
        candidates=None,
        file="fashion_mnist/",
        source=TFDS,
        licence="MIT",
        citation="H. Xiao, K. Rasul, R. Vollgraf. Fashion-MNIST, 2017",
        address=_TFDS_PAGE + "fashion_mnist",
    ),
    Spec(
        name="cifar10",
        title="CIFAR-10",
        kind="images",
        examples=(50000, 10000),
        shape=(32, 32, 3),
        classes=10,
        candidates=None,
        file="cifar10/",
        source=TFDS,
        licence="none stated",
        citation="A. Krizhevsky. Learning Multiple Layers of Features from Tiny Images, 2009",
        address=_TFDS_PAGE + "cifar10",
    ),
    Spec(
        name="yeast",
        title="Yeast",
        kind="uci",
        examples=(1484,),
        shape=(8,),
        classes=10,
        candidates=None,
        file="yeast.data",
        source=UCI,
        licence="CC BY 4.0",
        citation="P. Horton, K. Nakai. A Probabilistic Classification System for Predicting the Cellular "
        "Localization Sites of Proteins, ISMB 1996",
        address=_UCI_PAGE + "110/yeast",
        sha256="7cf61776fc04f527f93bf57a327b863893a1225d82df02d457e8950173218258",
    ),
    Spec(
        name="texture",
        title="Texture",
        kind="uci",
        examples=(5500,),
        shape=(40,),
        classes=11,
        candidates=None,
        file="texture.dat",
        source="the KEEL repository or the ELENA project",
        licence="none stated",
        citation="A. Guerin-Dugue et al. Enhanced Learning for Evolutive Neural Architecture (ELENA), 1995",
        address="https://sci2s.ugr.es/keel/dataset.php?cod=72",
        sha256="6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3",
    ),
    Spec(
        name="synthetic_control",
        title="Synthetic Control",
        kind="uci",
        examples=(600,),
        shape=(60,),
        classes=6,
        candidates=None,
        file="synthetic_control.data",
        source=UCI,
        licence="CC BY 4.0",
        citation="R. Alcock. Synthetic Control Chart Time Series, UCI, 1999",
        address=_UCI_PAGE + "139/synthetic+control+chart+time+series",
        sha256="d5fbabf133cca254174b316a9d428103705edd7d5389bf818869a60cdf42ac92",
    ),
    Spec(
        name="dermatology",
        title="Dermatology",
        kind="uci",
        examples=(366,),
        shape=(34,),
        classes=6,
        candidates=None,
        file="dermatology.data",
        source=UCI,
        licence="CC BY 4.0",
        citation="N. Ilter, H. Guvenir. Dermatology, UCI, 1998",
        address=_UCI_PAGE + "33/dermatology",
        sha256="455eba77f72cd087ce54a5a266c514c5f34e85000c8689ad09e796d68ad45742",
    ),
    Spec(
        name="20newsgroups",
        title="20 Newsgroups",
        kind="text",
        examples=(18846,),
        shape=(300,),
        classes=20,
        candidates=None,
        file="20news-bydate.tar.gz",
        source="Jason Rennie's 20 Newsgroups page",
        licence="none stated",
        citation="K. Lang. NewsWeeder: Learning to Filter Netnews, ICML 1995",
        address="http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        sha256="13899d6a13b52f8b50596a60e1bc05b662dc0d4e82ffdc57f929780249f948e5",
    ),
    Spec(
        name="lost",
        title="Lost",
        kind="real-world",
        examples=(1122,),
        shape=(108,),
        classes=16,
        candidates=2.23,
        file="lost.mat",
        source=PALM,
        licence=ACADEMIC,
        citation="T. Cour, B. Sapp, B. Taskar. Learning from Partial Labels, JMLR 2011",
        address=_PALM_PAGE,
        sha256="42a8cc43e05578087e7b8ca194647829ec535dc4d0a86cf47f357c5eb3146e4f",
    ),
    Spec(
        name="msrcv2",
        title="MSRCv2",
        kind="real-world",
        examples=(1758,),
        shape=(48,),
        classes=23,
        candidates=3.16,
        file="MSRCv2.mat",
        source=PALM,
        licence=ACADEMIC,
        citation="L. Liu, T. Dietterich. A Conditional Multinomial Mixture Model for Superset Label "
        "Learning, NIPS 2012",
        address=_PALM_PAGE,
        sha256="948e4d443a5450308f05aa689bc82d9bcc7af699a113a6a81c40ef337a20c393",
    ),
    Spec(
        name="birdsong",
        title="BirdSong",
        kind="real-world",
        examples=(4998,),
        shape=(38,),
        classes=13,
        candidates=2.18,
        file="BirdSong.mat",
        source=PALM,
        licence=ACADEMIC,
        citation="F. Briggs, X. Fern, R. Raich. Rank-Loss Support Instance Machines for MIML Instance "
        "Annotation, KDD 2012",
        address=_PALM_PAGE,
        sha256="2170d46765a151ac80623d9a1242e0299802236e5574442bdb596bef90f50743",
    ),
    Spec(
        name="soccer_player",
        title="Soccer Player",
        kind="real-world",
        examples=(17472,),
        shape=(279,),
        classes=171,
        candidates=2.09,
        file="Soccer Player.mat",
        source=PALM,
        licence=ACADEMIC,
        citation="Z. Zeng et al. Learning by Associating Ambiguously Labeled Images, CVPR 2013",
        address=_PALM_PAGE,
    ),
    Spec(
        name="yahoo_news",
        title="Yahoo! News",
        kind="real-world",
        examples=(22991,),
        shape=(163,),
        classes=219,
        candidates=1.91,
        file="Yahoo! News.mat",
        source=PALM,
        licence=ACADEMIC,
        citation="M. Guillaumin, J. Verbeek, C. Schmid. Multiple Instance Metric Learning from "
        "Automatically Labeled Bags of Faces, ECCV 2010",
        address=_PALM_PAGE,
    ),
)
# Annotations that go with the images of CIFAR-10; see `valen_tf.datasets.human`.
_HUMAN_ROWS = (
    Spec(
        name="cifar10n",
        title="CIFAR-10N, training images",
        kind="human",
        examples=(50000,),
        shape=(32, 32, 3),
        classes=10,
        candidates=1.46,
        file="cifar10n.npz",
        source="the CIFAR-N project, as an .npz archive",
        licence="non-commercial",
        citation="J. Wei et al. Learning with Noisy Labels Revisited, ICLR 2022",
        address="https://github.com/UCSC-REAL/cifar-10-100n",
        sha256="6024485a143efa682792c21d7f2adfdef5a374dce699bb2fcd4d62cd55cc4852",
    ),
    Spec(
        name="cifar10h",
        title="CIFAR-10H, test images",
        kind="human",
        examples=(10000,),
        shape=(32, 32, 3),
        classes=10,
        candidates=1.94,
        file="cifar10h-counts.npy",
        source="the CIFAR-10H project",
        licence="non-commercial",
        citation="J. Peterson et al. Human Uncertainty Makes Classification More Robust, ICCV 2019",
        address="https://github.com/jcpeterson/cifar-10h",
        sha256="9b36b4550349af56c79083356312eb4af856cc5fd3caf1f669d40b9d0bbb69ff",
    ),
)
# Networks that were trained on true labels for 400 epochs in the authors' architectures: the file that
# the configs name, and the checksum of the one that the records were made with. Nobody publishes them;
# `valen-tf data clean-network` trains others.
CLEAN_NETWORKS = {
    "mnist": (
        "mnist_400.npz",
        "8de7e0e82d1f91987b2eaf3242497aa75e1aa67c6fd9eb4a03b1e3d9ef8dbf89",
    ),
    "kmnist": (
        "kmnist_400.npz",
        "8bf4764a6e7a77d40aba0fa32707c0996cdd74692e0e4db400bdb6d13f90abcf",
    ),
    "fashion_mnist": (
        "fmnist_400.npz",
        "a6c73f278f925219f8912152328bab14832d2b9f5e51f31025a10b3431cfa770",
    ),
    "cifar10": (
        "cifar10_400.npz",
        "c5f8955bfdf9c915f4b6eaf242ebe82eb3284e6b983133c8881e3e7ea9873688",
    ),
}
SPECS = {spec.name: spec for spec in _ROWS}
HUMAN = {spec.name: spec for spec in _HUMAN_ROWS}


def check_counts(spec: Spec, parts: Sequence, where: str) -> None:
    """Refuses data sets that are not the ones the row tells of.

    Args:
        spec: The row.
        parts: Data sets, as many as `spec.examples`.
        where: The file or folder that they come from.
    """
    expected = [(size, spec.shape, spec.classes) for size in spec.examples]
    found = [(len(part), part.feature_shape, part.num_classes) for part in parts]
    if found != expected:
        raise ValueError(
            f"{where} is not the public {spec.title}, which has {_words(expected)}. "
            f"Received: {_words(found)}"
        )


def _words(counts):
    sizes = " + ".join(f"{size:,}" for size, _, _ in counts)
    _, shape, classes = counts[0]
    return f"{sizes} examples of {' x '.join(map(str, shape))} features in {classes} classes"
