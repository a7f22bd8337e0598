"""The messages of DFModel's design files [ko24], made of their descriptor, which protoc writes of dfmodel.proto."""

from importlib.resources import files

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.internal import builder

_FILES = descriptor_pb2.FileDescriptorSet.FromString(files(__package__).joinpath("dfmodel.binpb").read_bytes())
DESCRIPTOR = descriptor_pool.Default().AddSerializedFile(_FILES.file[0].SerializeToString())
builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, __name__, globals())
