"""Weights of the public implementations under their own names, loaded into our models.

One file per model says how: a function reads a state dict with the public names (``PublicWeights``) and gives a
``Translation``, that is the settings that names and shapes imply, the columns of the features, and our state dict. The
file registers it by the model's name::

    def translate(weights: PublicWeights, asked: Mapping[str, Any]) -> Translation:
        hidden, columns = weights.shape("frame_layer.vis_conv.weight")[:2]
        state = {"clips.linear.weight": weights.take("frame_layer.vis_conv.weight"), …}
        weights.skip("text_encoder.bert.*")                  # what the public model has and ours leaves to features
        return Translation({"hidden": hidden}, Dims(query, columns, None), state)

    register_public("tan2d", translate, marks=("frame_layer.vis_conv.weight",), settings={"padding": "first"},
                    source="microsoft/2D-TAN, lib/models/tan.py: TAN")

- ``weights.take(name)`` gives a tensor and remembers that it was used; ``take_layer(ours, theirs)`` gives weight and
  bias of a layer under our names; ``shape``, ``in`` and ``count("convs.{}.weight")`` look without taking. A name that
  is not there is an error by itself, and so is a name that nobody took or skipped.
- ``asked`` are the settings that a user gave. What no shape tells (``heads``, ``max_clips`` of a pooled map) is a
  ``Translation``'s ``assumed``: the authors' value, unless a user asks for another; the user is told. What shapes do
  tell (``settings``) and a user contradicts is refused.
- ``settings`` of the registration are those under which our model computes what the public code does, quirks included
  (``as=official``). Axes of length 1 at the end (a convolution of width 1 for our linear layer) are dropped.
- ``training`` of the registration are settings of training that decide how a run predicts (``task``, ``end_time``).
- ``marks`` are names that every state dict of this model has and those of other models lack.

``load_public(name, tensors, settings)`` makes the model. Everything is compared with files of the public
implementations' own results by ``tests/models/public``, with a module of ``tests/helpers/golden_models`` each.
"""

from momentseek.models.public.loading import PublicModel, load_public
from momentseek.models.public.registry import PUBLIC_MODELS, PublicSpec, register_public
from momentseek.models.public.weights import PublicWeights, Translation

__all__ = [
    "PUBLIC_MODELS",
    "PublicModel",
    "PublicSpec",
    "PublicWeights",
    "Translation",
    "load_public",
    "register_public",
]
