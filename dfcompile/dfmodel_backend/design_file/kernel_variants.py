"""The messages with a kernel's dimensions, one for each kind of operands."""

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema

Gemm = schema.GEMM_Input1_Weight | schema.GEMM_Input1_Input2
Variant = Gemm | schema.Elementwise_Input1 | schema.Elementwise_Input1_Input2


def variant_of(kernel: schema.Kernel) -> Variant:
    """Return the message with a kernel's dimensions."""
    variant: Variant = getattr(kernel, str(kernel.WhichOneof("kernel_variant")))
    return variant
