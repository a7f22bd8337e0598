"""What kernels take on a device: each way of counting by its own name."""
