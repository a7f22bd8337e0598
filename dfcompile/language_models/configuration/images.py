"""What an encoder of images hands to a decoder that attends to it: how many tokens, and of how many elements [hf]."""

from collections.abc import Mapping

from dfcompile.language_models.configuration.fields import Fields

# Of a class: tokens beside those of patches, elements of a pixel's side of a patch, and of the image.
_BESIDE = {"vit": 1, "deit": 2, "beit": 1}
_DEFAULTS: Mapping[str, object] = {"image_size": 224, "patch_size": 16, "hidden_size": 768}
_SWIN: Mapping[str, object] = {"image_size": 224, "patch_size": 4, "embed_dim": 96, "depths": [2, 2, 6, 2]}


def image_tokens(fields: Fields) -> tuple[int, int]:
    """Return tokens of an image, and elements of each, of the encoder beside a decoder.

    Raises:
        UserError: an encoder that is not known, or a field that is wrong.
    """
    values = fields.nested("encoder")
    kind, known = values.get("model_type"), (*_BESIDE, "donut-swin")
    if kind not in known:
        raise fields.wrong("encoder", f"{str(kind)[:40]!r} against one of {', '.join(known)}")
    is_swin = kind == "donut-swin"
    inner = Fields(
        values, _SWIN if is_swin else _DEFAULTS, fields.name, str(kind), f"{fields.where}: encoder", fields.taken
    )
    patches = [
        size // patch for size, patch in zip(_sides(inner, "image_size"), _sides(inner, "patch_size"), strict=True)
    ]
    if not is_swin:
        return patches[0] * patches[1] + _BESIDE[str(kind)], inner.count("hidden_size")
    depths = inner.stated("depths")
    if not isinstance(depths, list) or not 0 < len(depths) <= 16:
        raise inner.wrong("depths", f"{str(depths)[:40]!r} against a list")
    for _ in depths[1:]:  # each stage but the last one merges four tokens, at borders fewer
        patches = [-(-side // 2) for side in patches]
    return patches[0] * patches[1], inner.count("embed_dim") * 2 ** (len(depths) - 1)


def _sides(fields: Fields, name: str) -> tuple[int, int]:
    """Return height and width: one number for both, or a list of two."""
    stated = fields.stated(name)
    if not isinstance(stated, list):
        return (fields.count(name),) * 2
    if len(stated) != 2 or not all(type(side) is int and 0 < side <= 2**20 for side in stated):
        raise fields.wrong(name, f"{str(stated)[:40]} against a number or two")
    return stated[0], stated[1]
