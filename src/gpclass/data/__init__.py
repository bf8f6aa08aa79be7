"""Rows wherever they are: arrays, files, iterables of blocks, Dask collections."""
