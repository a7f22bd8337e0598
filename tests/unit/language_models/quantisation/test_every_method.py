"""What holds for the configurations of every method: of each file of examples beside this one."""

from importlib import import_module
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.quantisation.precision import methods
from tests.unit.language_models.quantisation.examples import Example, changed, places, read

BY_METHOD: dict[str, tuple[Example, ...]] = {
    name: import_module(f"tests.unit.language_models.quantisation.test_{name.replace('-', '_')}").EXAMPLES
    for name, method in methods().items()
    if name == method.name
}
EXAMPLES = [(name, example) for name, examples in BY_METHOD.items() for example in examples]


def is_below(path: str, free: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in free)


def test_every_method_has_a_file_and_examples() -> None:
    files = {Path(method.stated.__code__.co_filename) for method in methods().values()}

    assert all(BY_METHOD.values())
    assert {*next(iter(files)).parent.glob("[!_]*.py")} == files


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_a_key_that_is_not_known_is_named_at_any_depth(name: str, example: Example) -> None:
    for path, holder in places(example.stated):
        if not isinstance(holder, dict) or is_below(path, example.free):
            continue
        with pytest.raises(UserError) as caught:
            read(changed(example.stated, path, 3, added="quantised_moons"))

        assert f"{path}.quantised_moons" in str(caught.value)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
@pytest.mark.parametrize("value", [[[[0]]], {"quantised_moons": 3}])
def test_a_value_of_a_wrong_type_is_named_or_no_figure_depends_on_it(
    name: str, example: Example, value: object
) -> None:
    stated, _ = read(example.stated)
    for path, _ in list(places(example.stated))[1:]:
        found, error = None, ""
        try:
            found, _ = read(changed(example.stated, path, value))
        except UserError as caught:
            error = str(caught)

        assert found == stated or path in error
