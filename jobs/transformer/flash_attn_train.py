"""Training as one script: ``python3 flash_attn_train.py --config FILE [--data FOLDER]``.

On a machine with several GPUs it starts torchrun itself, unless torchrun started it.
"""

import sys

from transformer.task import main

if __name__ == "__main__":
    sys.exit(main())
