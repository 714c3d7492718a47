"""`python -m valen_tf.cli`."""

import sys

from valen_tf.cli.main import main

sys.exit(main())
