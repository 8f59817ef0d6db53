"""Does a system find moments, or the places where training moments lay (debiased grounding, §3.2 and §5)?

``debias_report`` compares systems on a usual test split (iid) and on one whose moments lie elsewhere (ood): the gap
between the two, R against dR by threshold, and where first predictions lie. Numpy only: runs may come from anywhere.
"""

from momentseek.evaluation.debias.report import DebiasReport, Truths, debias_report
from momentseek.evaluation.debias.systems import System, blind_systems

__all__ = ["DebiasReport", "System", "Truths", "blind_systems", "debias_report"]
