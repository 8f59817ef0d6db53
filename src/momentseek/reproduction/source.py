"""The data of a table: real ones where a folder has them, else the simulation that the table names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from momentseek.errors import MomentseekError
from momentseek.features.data import DATA_FILE
from momentseek.reproduction.paper_table import PaperTable
from momentseek.simulation import SimulationSettings, simulate
from momentseek.simulation.grounding import GroundingSettings, simulate_grounding

TRAINED_BY = ("preset", "steps", "validations", "settings")
"""What a table's section ``simulation`` says about training rather than about the data."""


def data_folder(table: PaperTable, given: Path | None, out: Path, announce: Callable[[str], None]) -> Path:
    """The folder of the data: ``given`` if it has data, else a simulation, made there or below ``out``."""
    wanted = {key: value for key, value in table.simulation.items() if key not in TRAINED_BY}
    like = wanted.pop("like", "tvr")
    folder = given or out / "data" / "-".join([like, *(f"{key}{value}" for key, value in sorted(wanted.items()))])
    if (folder / DATA_FILE).is_file() or folder.suffix == ".toml":
        return folder
    if folder.is_dir() and any(folder.iterdir()):
        raise MomentseekError(
            f"{folder}: has no {DATA_FILE}; describe its features there, or name a folder that is not there yet for a "
            "simulation"
        )
    announce(f"{folder}: simulating {wanted.get('videos', 2000):,} videos")
    if like == "tvr":
        simulate(folder, SimulationSettings(**wanted))
    else:
        simulate_grounding(folder, GroundingSettings(like=like, **wanted))
    return folder
