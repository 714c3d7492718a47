"""What is known of every data set before a file is opened: one row each."""

import dataclasses

PALM = "the PALM group's partial-label page (Min-Ling Zhang, Southeast University)"
ACADEMIC = "academic purpose only"
UCI = "the UCI Machine Learning Repository"
TFDS = "TensorFlow Datasets"


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


_ROWS = (
    Spec(
        *("digits", "Handwritten digits", "embedded", (1797,), (64,), 10, None),
        *("(in scikit-learn)", "scikit-learn, from " + UCI, "CC BY 4.0"),
        "E. Alpaydin, C. Kaynak. Optical Recognition of Handwritten Digits, UCI, 1998",
    ),
    Spec(
        *("mnist", "MNIST", "images", (60000, 10000), (28, 28, 1), 10, None),
        *("mnist/", TFDS, "CC BY-SA 3.0"),
        "Y. LeCun et al. Gradient-based learning applied to document recognition, Proc. IEEE 1998",
    ),
    Spec(
        *("kmnist", "Kuzushiji-MNIST", "images", (60000, 10000), (28, 28, 1), 10, None),
        *("kmnist/", TFDS, "CC BY-SA 4.0"),
        "T. Clanuwat et al. Deep Learning for Classical Japanese Literature, 2018",
    ),
    Spec(
        *("fashion_mnist", "Fashion-MNIST", "images", (60000, 10000), (28, 28, 1), 10, None),
        *("fashion_mnist/", TFDS, "MIT"),
        "H. Xiao, K. Rasul, R. Vollgraf. Fashion-MNIST, 2017",
    ),
    Spec(
        *("cifar10", "CIFAR-10", "images", (50000, 10000), (32, 32, 3), 10, None),
        *("cifar10/", TFDS, "none stated"),
        "A. Krizhevsky. Learning Multiple Layers of Features from Tiny Images, 2009",
    ),
    Spec(
        *("yeast", "Yeast", "uci", (1484,), (8,), 10, None, "yeast.data", UCI, "CC BY 4.0"),
        "P. Horton, K. Nakai. A Probabilistic Classification System for Predicting the Cellular "
        "Localization Sites of Proteins, ISMB 1996",
    ),
    Spec(
        *("texture", "Texture", "uci", (5500,), (40,), 11, None, "texture.dat"),
        *("the KEEL repository or the ELENA project", "none stated"),
        "A. Guerin-Dugue et al. Enhanced Learning for Evolutive Neural Architecture (ELENA), 1995",
    ),
    Spec(
        *("synthetic_control", "Synthetic Control", "uci", (600,), (60,), 6, None),
        *("synthetic_control.data", UCI, "CC BY 4.0"),
        "R. Alcock. Synthetic Control Chart Time Series, UCI, 1999",
    ),
    Spec(
        *("dermatology", "Dermatology", "uci", (366,), (34,), 6, None),
        *("dermatology.data", UCI, "CC BY 4.0"),
        "N. Ilter, H. Guvenir. Dermatology, UCI, 1998",
    ),
    Spec(
        *("20newsgroups", "20 Newsgroups", "text", (18846,), (300,), 20, None),
        *("20news-bydate.tar.gz", "Jason Rennie's 20 Newsgroups page", "none stated"),
        "K. Lang. NewsWeeder: Learning to Filter Netnews, ICML 1995",
    ),
    Spec(
        *("lost", "Lost", "real-world", (1122,), (108,), 16, 2.23),
        *("lost.mat", PALM, ACADEMIC),
        "T. Cour, B. Sapp, B. Taskar. Learning from Partial Labels, JMLR 2011",
    ),
    Spec(
        *("msrcv2", "MSRCv2", "real-world", (1758,), (48,), 23, 3.16),
        *("MSRCv2.mat", PALM, ACADEMIC),
        "L. Liu, T. Dietterich. A Conditional Multinomial Mixture Model for Superset Label Learning, "
        "NIPS 2012",
    ),
    Spec(
        *("birdsong", "BirdSong", "real-world", (4998,), (38,), 13, 2.18),
        *("BirdSong.mat", PALM, ACADEMIC),
        "F. Briggs, X. Fern, R. Raich. Rank-Loss Support Instance Machines for MIML Instance "
        "Annotation, KDD 2012",
    ),
    Spec(
        *("soccer_player", "Soccer Player", "real-world", (17472,), (279,), 171, 2.09),
        *("Soccer Player.mat", PALM, ACADEMIC),
        "Z. Zeng et al. Learning by Associating Ambiguously Labeled Images, CVPR 2013",
    ),
    Spec(
        *("yahoo_news", "Yahoo! News", "real-world", (22991,), (163,), 219, 1.91),
        *("Yahoo! News.mat", PALM, ACADEMIC),
        "M. Guillaumin, J. Verbeek, C. Schmid. Multiple Instance Metric Learning from Automatically "
        "Labeled Bags of Faces, ECCV 2010",
    ),
)
# Annotations that go with the images of CIFAR-10; see `valen_tf.datasets.human`.
_HUMAN_ROWS = (
    Spec(
        *("cifar10n", "CIFAR-10N, training images", "human", (50000,), (32, 32, 3), 10, 1.46),
        *("cifar10n.npz", "the CIFAR-N project, as an .npz archive", "non-commercial"),
        "J. Wei et al. Learning with Noisy Labels Revisited, ICLR 2022",
    ),
    Spec(
        *("cifar10h", "CIFAR-10H, test images", "human", (10000,), (32, 32, 3), 10, 1.94),
        *("cifar10h-counts.npy", "the CIFAR-10H project", "non-commercial"),
        "J. Peterson et al. Human Uncertainty Makes Classification More Robust, ICCV 2019",
    ),
)
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
