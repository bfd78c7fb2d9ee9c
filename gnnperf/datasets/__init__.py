"""Measurement tables: public sources read into one schema, their graphs, splits (pandas, pyarrow).

The way of a measurement: :mod:`readers` (upstream's files -> rows) -> :mod:`importing` (checks, graphs) ->
:mod:`dataset` (one table and one :mod:`graph_store` in a folder) -> :mod:`splits`.
"""
