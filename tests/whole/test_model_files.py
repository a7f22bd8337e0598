"""The models of ``benchmarks/models`` are those of their papers, and their answers depend on what they are shown."""

from pathlib import Path

import pytest

from dfcompile.frontend.torch.python_module import running

FOLDER = Path(__file__).parents[2] / "benchmarks" / "models"

# As published for the weights that torchvision offers (main head alone), and by the papers.
PARAMETERS = {
    "alexnet": 61_100_840,
    "convnext_t": 28_589_128,
    "deeplab_v3": 39_638_869,
    "densenet_121": 7_978_856,
    "efficientnet_b0": 5_288_548,
    "fcn": 32_957_013,
    "googlenet": 6_624_904,
    "inception_v3": 23_834_568,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3": 5_483_032,
    "regnet_y_400mf": 4_344_144,
    "resnet_18": 11_689_512,
    "resnet_50": 25_557_032,
    "shufflenet_v2": 2_278_604,
    "squeezenet": 1_235_496,
    "swin_t": 28_288_354,
    "unet": 31_031_810,
    "vgg_16": 138_357_544,
    "vit_b_16": 86_567_656,
}


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items(), ids=PARAMETERS)
def test_model_has_as_many_parameters_as_published(name: str, count: int) -> None:
    import torch

    with torch.device("meta"), running(FOLDER / f"{name}.py") as file:
        network = file.module.model()

    assert isinstance(network, torch.nn.Module)
    assert sum(parameter.numel() for parameter in network.parameters()) == count


# Deep networks: with PyTorch's own initial weights nothing of the input would arrive at their outputs.
DEEP = (
    "densenet_121",
    "efficientnet_b0",
    "googlenet",
    "inception_v3",
    "mobilenet_v2",
    "mobilenet_v3",
    "resnet_18",
    "shufflenet_v2",
    "squeezenet",
    "vgg_16",
)
ONE_SIZE = ("vgg_16",)  # takes no smaller images


@pytest.mark.parametrize("name", DEEP)
def test_outputs_depend_on_inputs_by_more_than_any_tolerance(name: str) -> None:
    import torch

    torch.manual_seed(0)
    with running(FOLDER / f"{name}.py") as file:
        network, image = file.module.model(), file.module.example_inputs()
        assert isinstance(network, torch.nn.Module)
        assert isinstance(image, torch.Tensor)
        if name not in ONE_SIZE:
            image = image[..., ::2, ::2]
        with torch.no_grad():
            one, other = network.eval()(image), network(torch.randn_like(image))

    assert (one - other).abs().max() > 1e-3 * one.abs().max()
