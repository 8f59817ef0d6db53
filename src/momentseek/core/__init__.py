"""The basic types (moments, judgements, runs) and what all folders use: errors, files, reports, C kernels."""
