"""Simulate and emulate disks whose tracks overlap: shingled (SMR) and interlaced (IMR).

>>> import imbrex
>>> results = imbrex.simulate("rw=randwrite,bs=4k,size=1GiB,number_ios=500", "imr-1t+track-map")
>>> results.summary["drives"][0]["completed"]
500

Everything is done by the library that the `imbrex` program uses too: the same options by the same names, the same results.
"""

from ._imbrex import Batch, ImbrexError, __version__
from ._calibrate import fit, probe, validate
from ._drive import Caveat, Drive, Zone
from ._registries import drive, drives, formats, generators, layer, layers
from ._simulate import InterruptedWarning, Results, simulate
from ._sweep import Sweep, sweep
from ._tables import Table
from ._trace import Trace

__all__ = [
    "Batch",
    "Caveat",
    "Drive",
    "ImbrexError",
    "InterruptedWarning",
    "Results",
    "Sweep",
    "Table",
    "Trace",
    "Zone",
    "__version__",
    "drive",
    "drives",
    "fit",
    "formats",
    "generators",
    "layer",
    "layers",
    "probe",
    "simulate",
    "sweep",
    "validate",
]
