"""Test whether systems find moments or the places where training moments lie (debiased grounding, §3.2 and §5)."""
