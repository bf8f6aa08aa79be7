"""Sources of rows: arrays, files, iterables of blocks, Dask collections."""
