"""The 2D moment map: every candidate moment of a video as a cell, by first clip and length (2D-TAN, MMN)."""

from momentseek.models.moment_map.cells import Cells, cells
from momentseek.models.moment_map.convolution import MapConvolution
from momentseek.models.moment_map.features import ConvolutionStack, max_over
from momentseek.models.moment_map.targets import overlap, scale_overlap

__all__ = ["Cells", "ConvolutionStack", "MapConvolution", "cells", "max_over", "overlap", "scale_overlap"]
