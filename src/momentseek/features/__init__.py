"""Features of clips and words: HDF5 files as the community keeps them, streamed; numpy and h5py only."""

from momentseek.features.cache import ArrayCache
from momentseek.features.data import Data, DataSplit, Dims
from momentseek.features.store import Features

__all__ = ["ArrayCache", "Dims", "Data", "Features", "DataSplit"]
