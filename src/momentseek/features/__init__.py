"""Features of clips and words: HDF5 files as the community keeps them, streamed; numpy and h5py only."""

from momentseek.features.cache import Cache
from momentseek.features.data import Columns, Data, Split
from momentseek.features.store import Features

__all__ = ["Cache", "Columns", "Data", "Features", "Split"]
