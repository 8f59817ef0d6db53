"""The vocabulary (moments, judgements, runs) and what every folder uses: errors, files, reports, C kernels."""
