"""The laboratory of N. Xu, C. Qiao, X. Geng, M.-L. Zhang, Instance-Dependent Partial Label Learning, 2021.

`paper` has what was published, `grid` the runs that its tables and figures need, `recording` makes a record
of each (`records`), `reproduce` runs them all; `tables`, `ranks`, `figures` and `typeset` make of the
records what `results` puts on one page. `configs` holds the protocols.
"""
