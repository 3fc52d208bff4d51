"""The licences of the sources of captured graphs."""

from passnet.data.capture.catalog import libraries
from passnet.data.dataset.licences import CHOICES, LICENCES, MAX_NETS, licences_of, named_nets
from recipes.publication import licence_of_package


def test_every_library_of_the_catalog_has_a_licence() -> None:
    assert {*libraries()} - {*LICENCES} == {"hub"}


def test_packages_are_looked_up_under_the_names_of_their_libraries() -> None:
    assert licence_of_package("segmentation-models-pytorch") == LICENCES["smp"]
    assert licence_of_package("fair-esm") == "MIT"
    assert licence_of_package("never-heard-of") == "not known"


SEVERAL = [
    "own.py:make",
    "ultralytics/yolo11n",
    "torchvision/a",
    *(f"timm/{k}" for k in "jihgfedcba"),
]


def test_the_nets_that_are_named_have_the_licences_of_all() -> None:
    assert len(CHOICES) <= MAX_NETS
    named = named_nets(SEVERAL)
    assert named == (
        *("own.py:make", "timm/a", "timm/b", "timm/c", "timm/d", "timm/e"),
        *("torchvision/a", "ultralytics/yolo11n"),
    )
    assert licences_of(named) == licences_of(SEVERAL)


def test_the_named_nets_of_parts_give_those_of_the_whole() -> None:
    for number in range(2 ** len(SEVERAL)):
        parts: tuple[list[str], list[str]] = ([], [])
        for bit, net in enumerate(SEVERAL):
            parts[number >> bit & 1].append(net)
        assert named_nets(named_nets(parts[0]) + named_nets(parts[1])) == named_nets(SEVERAL)
