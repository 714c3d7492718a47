"""The classifier, and nothing of its training, as a SavedModel for TF Serving or as TFLite files.

A SavedModel written here takes raw features, as the classifier does, under the name `features`. Its
signatures and their outputs:

| `serving_default` | |
|---|---|
| `probabilities`, `logits` | float32 [batch, classes] |
| `class_index`, `class_name` | the most probable class: int32 and string [batch] |
| `entropy` | of the probabilities, in nats: float32 [batch] |

| `top_k` | the k most probable classes, best first |
|---|---|
| `probabilities` | float32 [batch, k] |
| `class_indices`, `class_names` | int32 and string [batch, k] |

A row that has no answer (a feature is NaN or infinite, or the logits overflow) says so: its numbers are
NaN, its indices -1, its names empty; the other rows of the batch are not touched. Features of another
shape or type are an error. The operations are such that other runtimes take the file as well: OpenVINO,
ONNX Runtime through tf2onnx, and TFLite.
"""

from valen_tf.export.folders import new_version, saved_model
from valen_tf.export.lite import tflite

__all__ = ["new_version", "saved_model", "tflite"]
