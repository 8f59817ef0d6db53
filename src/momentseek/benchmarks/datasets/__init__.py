"""Build benchmark datasets: one module or folder per protocol, with a record of every decision."""
