"""Image-text encoders from ONNX exports of CLIP and SigLIP models, as optimum and transformers.js write them."""
