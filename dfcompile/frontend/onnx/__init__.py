"""ONNX models: from a file to a draft that says everything."""
