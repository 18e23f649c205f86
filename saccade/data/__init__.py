"""Data: files, fields, batches, named data sets."""
