"""Sources of rows: files, iterables of blocks, Dask collections."""
