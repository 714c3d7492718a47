"""What is known of every data set before a file is opened: one row each."""

import dataclasses

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
        *("digits", "Handwritten digits", "embedded", (1797,), (64,), 10, None),
        *("(in scikit-learn)", "scikit-learn, from " + UCI, "CC BY 4.0"),
        "E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits, UCI, 1998",
        address=_UCI_PAGE + "80/optical+recognition+of+handwritten+digits",
    ),
    Spec(
        *("mnist", "MNIST", "images", (60000, 10000), (28, 28, 1), 10, None),
        *("mnist/", TFDS, "CC BY-SA 3.0"),
        "Y. LeCun et al. Gradient-based learning applied to document recognition, Proc. IEEE 1998",
        address=_TFDS_PAGE + "mnist",
    ),
    Spec(
        *("kmnist", "Kuzushiji-MNIST", "images", (60000, 10000), (28, 28, 1), 10, None),
        *("kmnist/", TFDS, "CC BY-SA 4.0"),
        "T. Clanuwat et al. Deep Learning for Classical Japanese Literature, 2018",
        address=_TFDS_PAGE + "kmnist",
    ),
    Spec(
        *("fashion_mnist", "Fashion-MNIST", "images", (60000, 10000), (28, 28, 1), 10, None),
        *("fashion_mnist/", TFDS, "MIT"),
        "H. Xiao, K. Rasul, R. Vollgraf. Fashion-MNIST, 2017",
        address=_TFDS_PAGE + "fashion_mnist",
    ),
    Spec(
        *("cifar10", "CIFAR-10", "images", (50000, 10000), (32, 32, 3), 10, None),
        *("cifar10/", TFDS, "none stated"),
        "A. Krizhevsky. Learning Multiple Layers of Features from Tiny Images, 2009",
        address=_TFDS_PAGE + "cifar10",
    ),
    Spec(
        *("yeast", "Yeast", "uci", (1484,), (8,), 10, None, "yeast.data", UCI, "CC BY 4.0"),
        "P. Horton, K. Nakai. A Probabilistic Classification System for Predicting the Cellular "
        "Localization Sites of Proteins, ISMB 1996",
        address=_UCI_PAGE + "110/yeast",
        sha256="7cf61776fc04f527f93bf57a327b863893a1225d82df02d457e8950173218258",
    ),
    Spec(
        *("texture", "Texture", "uci", (5500,), (40,), 11, None, "texture.dat"),
        *("the KEEL repository or the ELENA project", "none stated"),
        "A. Guerin-Dugue et al. Enhanced Learning for Evolutive Neural Architecture (ELENA), 1995",
        address="https://sci2s.ugr.es/keel/dataset.php?cod=72",
        sha256="6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3",
    ),
    Spec(
        *("synthetic_control", "Synthetic Control", "uci", (600,), (60,), 6, None),
        *("synthetic_control.data", UCI, "CC BY 4.0"),
        "R. Alcock. Synthetic Control Chart Time Series, UCI, 1999",
        address=_UCI_PAGE + "139/synthetic+control+chart+time+series",
        sha256="d5fbabf133cca254174b316a9d428103705edd7d5389bf818869a60cdf42ac92",
    ),
    Spec(
        *("dermatology", "Dermatology", "uci", (366,), (34,), 6, None),
        *("dermatology.data", UCI, "CC BY 4.0"),
        "N. Ilter, H. Guvenir. Dermatology, UCI, 1998",
        address=_UCI_PAGE + "33/dermatology",
        sha256="455eba77f72cd087ce54a5a266c514c5f34e85000c8689ad09e796d68ad45742",
    ),
    Spec(
        *("20newsgroups", "20 Newsgroups", "text", (18846,), (300,), 20, None),
        *("20news-bydate.tar.gz", "Jason Rennie's 20 Newsgroups page", "none stated"),
        "K. Lang. NewsWeeder: Learning to Filter Netnews, ICML 1995",
        address="http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        sha256="13899d6a13b52f8b50596a60e1bc05b662dc0d4e82ffdc57f929780249f948e5",
    ),
    Spec(
        *("lost", "Lost", "real-world", (1122,), (108,), 16, 2.23),
        *("lost.mat", PALM, ACADEMIC),
        "T. Cour, B. Sapp, B. Taskar. Learning from Partial Labels, JMLR 2011",
        address=_PALM_PAGE,
        sha256="42a8cc43e05578087e7b8ca194647829ec535dc4d0a86cf47f357c5eb3146e4f",
    ),
    Spec(
        *("msrcv2", "MSRCv2", "real-world", (1758,), (48,), 23, 3.16),
        *("MSRCv2.mat", PALM, ACADEMIC),
        "L. Liu, T. Dietterich. A Conditional Multinomial Mixture Model for Superset Label Learning, "
        "NIPS 2012",
        address=_PALM_PAGE,
        sha256="948e4d443a5450308f05aa689bc82d9bcc7af699a113a6a81c40ef337a20c393",
    ),
    Spec(
        *("birdsong", "BirdSong", "real-world", (4998,), (38,), 13, 2.18),
        *("BirdSong.mat", PALM, ACADEMIC),
        "F. Briggs, X. Fern, R. Raich. Rank-Loss Support Instance Machines for MIML Instance "
        "Annotation, KDD 2012",
        address=_PALM_PAGE,
        sha256="2170d46765a151ac80623d9a1242e0299802236e5574442bdb596bef90f50743",
    ),
    Spec(
        *("soccer_player", "Soccer Player", "real-world", (17472,), (279,), 171, 2.09),
        *("Soccer Player.mat", PALM, ACADEMIC),
        "Z. Zeng et al. Learning by Associating Ambiguously Labeled Images, CVPR 2013",
        address=_PALM_PAGE,
    ),
    Spec(
        *("yahoo_news", "Yahoo! News", "real-world", (22991,), (163,), 219, 1.91),
        *("Yahoo! News.mat", PALM, ACADEMIC),
        "M. Guillaumin, J. Verbeek, C. Schmid. Multiple Instance Metric Learning from Automatically "
        "Labeled Bags of Faces, ECCV 2010",
        address=_PALM_PAGE,
    ),
)
# Annotations that go with the images of CIFAR-10; see `valen_tf.datasets.human`.
_HUMAN_ROWS = (
    Spec(
        *("cifar10n", "CIFAR-10N, training images", "human", (50000,), (32, 32, 3), 10, 1.46),
        *("cifar10n.npz", "the CIFAR-N project, as an .npz archive", "non-commercial"),
        "J. Wei et al. Learning with Noisy Labels Revisited, ICLR 2022",
        address="https://github.com/UCSC-REAL/cifar-10-100n",
        sha256="6024485a143efa682792c21d7f2adfdef5a374dce699bb2fcd4d62cd55cc4852",
    ),
    Spec(
        *("cifar10h", "CIFAR-10H, test images", "human", (10000,), (32, 32, 3), 10, 1.94),
        *("cifar10h-counts.npy", "the CIFAR-10H project", "non-commercial"),
        "J. Peterson et al. Human Uncertainty Makes Classification More Robust, ICCV 2019",
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


def check_counts(spec, parts, where):
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
