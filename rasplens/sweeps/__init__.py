"""Many jobs on many processors or machines: each done once, kept, and a row of one table."""

from rasplens.sweeps.comparison_jobs import comparison_job
from rasplens.sweeps.job import Job
from rasplens.sweeps.store import stored_rows
from rasplens.sweeps.sweep import TABLE, Standing, sweep

__all__ = ["TABLE", "Job", "Standing", "comparison_job", "stored_rows", "sweep"]
