"""Test whether systems find moments or just usual locations of training moments (debiased grounding, §3.2 and §5)."""
