"""The licences of the sources of captured graphs."""

from passnet.data.capture.catalog import libraries
from passnet.data.dataset.licences import LICENCES
from recipes.publication import licence_of_package


def test_every_library_of_the_catalog_has_a_licence() -> None:
    assert {*libraries()} - {*LICENCES} == {"hub"}


def test_packages_are_looked_up_under_the_names_of_their_libraries() -> None:
    assert licence_of_package("segmentation-models-pytorch") == LICENCES["smp"]
    assert licence_of_package("fair-esm") == "MIT"
    assert licence_of_package("never-heard-of") == "not known"
