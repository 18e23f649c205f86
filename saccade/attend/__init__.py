"""Attention: score x mask x normaliser (+ position) is its meaning, a kernel is its implementation.

The room is called `attend` because `saccade.attention` is the function. It needs torch alone.
"""
