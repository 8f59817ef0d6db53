"""Trained models as ONNX files, so that adding videos and searching need no torch.

The graphs are drawn here, layer by layer, and every export is compared with torch before it counts. (Small models that
only re-rank are followed by torch's exporter instead: ``traced``.) That is a second description of each network, so
``torch.onnx.export`` was tried in its place (torch 2.13, ONNX Runtime 1.31 on one
thread, opset 17, default settings, features of 768 and 2,048 columns; medians of 15 runs on a machine that was busy
with other work, so that only large differences mean something):

=========  ================  ==================  =====================================
model      export, s         file, MB            run, ms
           ours / torch's    ours / torch's      ours / torch's
=========  ================  ==================  =====================================
xml        0.3 / 2.9         11.9 / 11.8         21 / 25 (100 clips)
reloclnet  0.6 / 4.2         30.9 / 30.7         65 / 68 (128 clips)
mmn        7.2 / 7.9         216.8 / 216.6       455 / 800 (a window)
crocs      4.2 / 7.1         216.8 / 216.6       362 / 735 (a window)
tan2d      11.7 / 14.7       243.6 / 243.4       2,139 / 4,118 (four windows)
mdd        8.0 / 25.8        146.6 / 151.0       3,287 / 2,790 (four windows)
cet        ours alone        ours alone          ours alone
=========  ================  ==================  =====================================

Both agree with torch to 3e-6. Torch's files run half as fast for MMN, CroCs and 2D-TAN, because their convolutions
visit cells of the map that hold no candidate (``map_nodes``). The exporter that needs no further packages
(TorchScript's, ``dynamo=False``) is deprecated, warns in eight ways, fixes the number of videos in 2D-TAN's and MDD's
graphs unless the model is changed (as it was for these figures), and fails on CET's attention and spans. The one that
follows it (``dynamo=True``) needs onnx and onnxscript (43 MB), took 10 s to two minutes for the small models of the
tests, whose files were up to six times as large, and failed on XML's LSTM and, as tried, on six of seven variants of
2D-TAN and MDD.
"""

from momentseek.models.export.writing import EXPORTABLE, ExportReport, export

__all__ = ["EXPORTABLE", "ExportReport", "export"]
