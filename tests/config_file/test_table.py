from dataclasses import MISSING, dataclass

from llmgw.config_file.kinds import NAME, integer
from llmgw.config_file.table import Field, Section


@dataclass(frozen=True)
class Pet:
    name: str
    legs: int = 4


NAMED = Field("name", NAME, "")
LEGS = Field("legs", integer(), "")
WINGS = Field("wings", integer(), "")
PETS = Section("zoo.pets", "", Pet, (NAMED, LEGS, WINGS))


def test_a_section_is_called_by_the_last_part_of_its_path():
    assert PETS.key == "pets"


def test_a_default_is_that_of_what_the_table_makes():
    assert PETS.default_of(LEGS) == 4
    assert PETS.default_of(NAMED) is MISSING
    assert PETS.default_of(WINGS) is MISSING
