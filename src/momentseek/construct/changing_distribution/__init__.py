"""Changing distribution: test moments where training moments are not (debiased grounding §3.2)."""
