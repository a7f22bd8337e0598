"""Layers of a language model through the back end: dataflow graphs, fused and sharded as any other model's."""
