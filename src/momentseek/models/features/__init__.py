"""Features of clips and words: HDF5 files as the community keeps them, streamed; numpy and h5py only."""
