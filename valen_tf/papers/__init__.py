"""Laboratories: a package for each paper whose evaluation is repeated."""
